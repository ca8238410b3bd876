import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd } from '../../shared/money.ts';
import type { Group } from '../limits/groups.ts';
import type { BudgetTerms, StoredPeriod } from './budget.ts';

/** `retry-after` for money that is held by requests in progress, in milliseconds. A guess: when they end is unknown. */
export const heldRetryMs = 1_000;

/** What a request needs, also in words. */
export interface Need {
  readonly nanos: number;
  readonly words: string;
}

/** A budget that a request asked for room, and its period as it was found. */
interface AskedBudget {
  readonly terms: BudgetTerms;
  /** `null` where the database had none. */
  readonly period: StoredPeriod | undefined;
  /** The group of the key; `null` without one. */
  readonly group: Pick<Group, 'name'> | null;
}

/**
 * The refusal of a request that has no room in one of its budgets: where several have none, by the one that is without for the
 * longest time.
 */
export function budgetRefusal(asked: readonly AskedBudget[], needed: Need, nowMs: number): Refusal {
  const refusals = asked
    .map((budget) => refusalBy(budget, needed, nowMs))
    .filter((refusal) => refusal !== null)
    .toSorted((one, other) => (other.retryAfterMs ?? 0) - (one.retryAfterMs ?? 0));
  const [longest] = refusals;
  if (longest === undefined) throw new Error('a request was refused by budgets that have room');
  return longest;
}

function refusalBy(
  { terms, period, group }: AskedBudget,
  { nanos: neededNanos, words: needed }: Need,
  nowMs: number,
): Refusal | null {
  const { limitNanos, owner } = terms;
  const { endMs, spentNanos, heldNanos } = period ?? {
    ...terms,
    spentNanos: limitNanos,
    heldNanos: 0,
  };
  if (limitNanos - spentNanos - heldNanos >= neededNanos) return null;
  const amount = formatUsd(limitNanos);
  const refillsAt = new Date(endMs).toISOString();
  const budget = { source: owner, amount, refillsAt };
  const [whose, holders] =
    owner === 'key'
      ? ["this key's budget", 'its']
      : [`the budget of the group '${group?.name}'`, "its keys'"];
  if (heldNanos > 0 && limitNanos - spentNanos >= neededNanos)
    return refuse(
      'budget_held',
      `Of ${whose} of ${amount} USD, ${formatUsd(spentNanos)} USD are spent and ${formatUsd(heldNanos)} USD held by ` +
        `${holders} requests in progress; this request needs ${needed}. Wait for one of them to end.`,
      { budget, retryAfterMs: heldRetryMs },
    );
  return refuse(
    'budget_exhausted',
    spentNanos >= limitNanos
      ? `${whose.charAt(0).toUpperCase()}${whose.slice(1)} of ${amount} USD is used up. It is full again at ${refillsAt}.`
      : `Of ${whose} of ${amount} USD, ${formatUsd(spentNanos)} USD are spent, and this request needs ${needed}. It is full again at ${refillsAt}.`,
    { budget, retryAfterMs: Math.max(0, endMs - nowMs) },
  );
}
