import { ownLimitOf } from '../limits/limits.ts';
import { codeOf } from '../exchange-summary.ts';
import type { ExchangeSummary } from '../exchange-summary.ts';
import { boundOf } from '../../shared/time-bounds.ts';

/** What requests are told apart by: nothing, their upstream, their model, or both. */
export const historyGroupings = ['', 'upstream', 'model', 'upstream,model'] as const;

export type HistoryGrouping = (typeof historyGroupings)[number];

/** What is counted of requests that ended. Those that refer to nothing are absent. */
export interface Counts {
  /** By outcome. */
  readonly requests: Record<string, number>;
  /** By the limit of this gateway that refused, or else by the error code: both closed lists. */
  readonly refusals: Record<string, number>;
  /** The times of streams to their first text, by the number of their bound. */
  readonly firstTexts: Record<number, number>;
  outputTokens: number;
  /** An integer of nano-USD that has no largest value. */
  chargeNanos: bigint;
}

/** The requests of one upstream, or to one model. */
export interface CountedGroup {
  /** `null` for requests that reached none, and where they are not told apart by it. */
  readonly upstream: string | null;
  readonly model: string | null;
  /** Whether these are the requests of all groups beyond the most frequent ones. */
  readonly isOther: boolean;
  readonly counts: Counts;
}

/** How many pairs of an upstream and a model are counted apart while an interval is open. */
const maxPairs = 1_000;

/** How many groups of one interval are kept: the most frequent ones, beside one for all others. */
export const maxGroups = 50;

/** Counts requests by group. */
export class GroupCounts {
  readonly #groups = new Map<string, CountedGroup>();
  readonly #by: HistoryGrouping;

  constructor(by: HistoryGrouping) {
    this.#by = by;
  }

  /** Counts a request that ended. */
  count({ outcome, refusal, usage, chargeNanos, ...summary }: CountedExchange): void {
    const { counts } = this.#of(summary);
    const { requests, refusals, firstTexts } = counts;
    requests[outcome] = (requests[outcome] ?? 0) + 1;
    const code = codeOf({ outcome, refusal });
    if (refusal !== null && code !== null) {
      const cause = ownLimitOf(refusal) ?? code;
      refusals[cause] = (refusals[cause] ?? 0) + 1;
    }
    counts.outputTokens += usage?.outputTokens ?? 0;
    counts.chargeNanos += BigInt(chargeNanos);
    const { protocol, mode, firstTextMs } = summary;
    // A passthrough request may be anything, and a whole answer has no text before its end.
    if (protocol === 'passthrough' || mode !== 'stream' || firstTextMs === null) return;
    const bound = boundOf(firstTextMs);
    firstTexts[bound] = (firstTexts[bound] ?? 0) + 1;
  }

  /** Adds the counts of groups, by this grouping. */
  add(groups: Iterable<CountedGroup>): void {
    for (const group of groups) addCounts(this.#of(group).counts, group.counts);
  }

  /** The counts of all requests, where they are not grouped. */
  whole(): Counts {
    return this.#of({}).counts;
  }

  /** All groups, in no order. */
  all(): Iterable<CountedGroup> {
    return this.#groups.values();
  }

  /** The most frequent groups first, then one for all others if there are more than `maxGroups`. */
  top(): readonly CountedGroup[] {
    const sorted = [...this.#groups.values()].toSorted(
      (one, other) => Number(one.isOther) - Number(other.isOther) || requestsOf(other) - requestsOf(one),
    );
    if (sorted.length <= maxGroups) return sorted;
    const others = otherGroup();
    for (const { counts } of sorted.slice(maxGroups)) addCounts(others.counts, counts);
    return [...sorted.slice(0, maxGroups), others];
  }

  #of({ upstream, model, isOther = false }: Partial<CountedGroup>): CountedGroup {
    const ofUpstream = this.#by.startsWith('upstream') ? (upstream ?? null) : null;
    const ofModel = this.#by.endsWith('model') ? (model ?? null) : null;
    const name = isOther && this.#by !== '' ? 'other' : `${ofUpstream ?? ''}\n${ofModel ?? ''}`;
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const isFull = this.#groups.size >= maxPairs;
    if (isFull && !isOther) return this.#of({ isOther: true });
    const group =
      name === 'other'
        ? otherGroup()
        : { upstream: ofUpstream, model: ofModel, isOther: false, counts: noCounts() };
    this.#groups.set(name, group);
    return group;
  }
}

/** What is read of a request that ended. */
export type CountedExchange = Pick<
  ExchangeSummary,
  'upstream' | 'model' | 'outcome' | 'refusal' | 'usage' | 'chargeNanos' | 'protocol' | 'mode' | 'firstTextMs'
>;

/** The counts of no request. */
export function noCounts(): Counts {
  return { requests: {}, refusals: {}, firstTexts: {}, outputTokens: 0, chargeNanos: 0n };
}

function otherGroup(): CountedGroup {
  return { upstream: null, model: null, isOther: true, counts: noCounts() };
}

function addCounts(to: Counts, from: Counts): void {
  addEach(to.requests, from.requests);
  addEach(to.refusals, from.refusals);
  addEach(to.firstTexts, from.firstTexts);
  to.outputTokens += from.outputTokens;
  to.chargeNanos += from.chargeNanos;
}

function addEach(to: Record<string, number>, from: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(from)) to[name] = (to[name] ?? 0) + times;
}

function requestsOf({ counts }: CountedGroup): number {
  return Object.values(counts.requests).reduce((sum, times) => sum + times, 0);
}
