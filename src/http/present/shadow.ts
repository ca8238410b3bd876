import type { ShadowView } from '../../domain/shadows/shadow-book.ts';
import { formatUsd } from '../../shared/money.ts';
import { isoTime } from './iso-time.ts';
import { presentModelPrice } from './price.ts';
import { presentUpstreamError } from './record.ts';

/** The shadow route of a model as JSON for operators, with what was found by comparing. */
export function presentShadow({ terms, running, budget, counts }: ShadowView) {
  const { model, route, share, price, budgetNanos, maxInFlight } = terms;
  const { outcomes, skipped, verdicts, pairs, timedPairs, answers, shadows, lastFailure } = counts;
  return {
    model,
    upstream: route.upstream,
    upstream_model: route.model,
    share,
    price: presentModelPrice(price),
    budget: {
      amount: budgetNanos === null ? null : formatUsd(budgetNanos),
      spent: formatUsd(budget.spentNanos),
      held: formatUsd(budget.heldNanos),
      resets_at: isoTime(budget.endMs),
    },
    running,
    max_in_flight: maxInFlight,
    since: isoTime(counts.sinceMs),
    requests: outcomes,
    skipped,
    compared: verdicts,
    means: {
      pairs,
      answers: presentMeans(answers, pairs, timedPairs),
      shadows: presentMeans(shadows, pairs, timedPairs),
    },
    last_failure: lastFailure === null ? null : presentFailure(lastFailure),
  };
}

/** A shadow route as `/admin/shadow` shows it. */
export type PresentedShadow = ReturnType<typeof presentShadow>;

type Counts = ShadowView['counts'];

/** The means of one side of the pairs that both finished; `null` without such a pair. */
function presentMeans(sums: Counts['answers'], pairs: number, timedPairs: number) {
  const { characters, firstTextMs, totalMs, costNanos } = sums;
  return {
    characters: meanOf(characters, pairs),
    first_text_ms: meanOf(firstTextMs, timedPairs),
    total_ms: meanOf(totalMs, pairs),
    cost: pairs === 0 ? null : formatUsd(Math.round(costNanos / pairs)),
  };
}

function meanOf(sum: number, count: number): number | null {
  return count === 0 ? null : Math.round(sum / count);
}

function presentFailure({ outcome, cause, upstreamError, atMs }: NonNullable<Counts['lastFailure']>) {
  return { at: isoTime(atMs), outcome, cause, upstream_error: presentUpstreamError(upstreamError) };
}
