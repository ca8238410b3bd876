import type { Need } from '../../domain/budgets/refusal.ts';
import type { OpenedRecord } from '../../domain/money/consumption.ts';
import { holdFor, unknownHiddenTokens } from '../../domain/money/hold-estimate.ts';
import { costOf, noTokens } from '../../domain/money/pricing.ts';
import type { Route } from '../../domain/routing.ts';
import { formatUsd } from '../../shared/money.ts';
import type { Ports } from '../ports.ts';
import type { PassthroughWork, TextWork } from '../stages.ts';

/** What a hold is wanted for. */
interface Wanted {
  /** The first fields of the record. */
  readonly record: Pick<OpenedRecord, 'model' | 'upstream' | 'mode' | 'price'>;
  /** What the request may cost, in nano-USD. */
  readonly nanos: number;
  /** What it is made of, for a refusal; `null` where it has no parts. */
  readonly parts: (() => string) | null;
}

/** The first fields of the record, and what the request may cost. */
export function wantedOf(work: TextWork | PassthroughWork, balanceMode: Ports['balanceMode']): Wanted {
  if (work.kind === 'passthrough') {
    // A passthrough record has the path in its `model` field.
    const { path: model, upstream, price } = work;
    const nanos = costOf(noTokens, price);
    return { record: { model, upstream, mode: 'sync', price }, nanos, parts: null };
  }
  const { request, model: offered, routes } = work;
  const { id: model, price, holdTokens } = offered;
  const { turns, maxOutputTokens, stream } = request;
  const least = leastOutputTokens(routes);
  const outputTokens = Math.max(maxOutputTokens ?? holdTokens, least);
  const strict = balanceMode === 'strict';
  const hiddenTokens = hiddenTokensOf(routes);
  const holdOf = (output: number, hidden: number): number =>
    holdFor({ turns, maxOutputTokens: output }, price, { holdTokens, strict, hiddenTokens: hidden });
  const nanos = holdOf(outputTokens, hiddenTokens);
  const parts = (): string => {
    const [prompt, asked] = [holdOf(0, 0), holdOf(outputTokens, 0)];
    const added = nanos > asked ? `, ${formatUsd(nanos - asked)} for what the upstream may add` : '';
    return `prompt ${formatUsd(prompt)}, answer up to ${formatUsd(asked - prompt)}${added}`;
  };
  const mode = stream ? 'stream' : 'sync';
  return { record: { model, upstream: routes[0]?.upstream ?? '', mode, price }, nanos, parts };
}

/** What a request needs to be sent: all that it may cost, with its parts, or anything at all, which is no amount to be told. */
export function needOf({ nanos, parts }: Wanted, neededNanos: number): Need {
  if (nanos !== neededNanos)
    return { nanos: neededNanos, words: 'some of it, as its cost is not known beforehand' };
  const needed = `${formatUsd(neededNanos)} USD`;
  return { nanos: neededNanos, words: parts === null ? needed : `${needed} (${parts()})` };
}

/** The smallest output cap that every upstream takes: a smaller one is raised to it, and the hold must cover that. */
export function leastOutputTokens(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ dialect }) => dialect.leastOutputTokens));
}

/** The longest prompt that one of the routes may add, in tokens. */
export function hiddenTokensOf(routes: readonly Route[]): number {
  return Math.max(...routes.map(({ hidden }) => hidden?.tokens ?? unknownHiddenTokens));
}
