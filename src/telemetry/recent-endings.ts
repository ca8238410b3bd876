import type { EndOutcome } from '../domain/money/consumption.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { EndingCounts, RecentEndings } from '../domain/ports/status.ts';
import { boundOf, quantilesOf, timeBounds } from '../shared/time-bounds.ts';

/** How long an ending counts, in seconds. */
const windowSeconds = 60;

/** What ended within one second. */
interface Second {
  /** The number of the second on the monotonic clock; -1 before the first use of this place. */
  number: number;
  requests: number;
  outputTokens: number;
  readonly endings: Map<EndOutcome, number>;
  /** How many first texts came within each bound. */
  readonly firstTexts: Uint32Array;
}

/**
 * Counts what ends, as a sink of the pipeline's reports: in a ring of seconds, so that neither memory nor reading grows
 * with the number of requests.
 */
export function createRecentEndings(clock: Pick<Clock, 'monotonicMs'>) {
  const startedMs = clock.monotonicMs();
  const ring = Array.from({ length: windowSeconds }, emptySecond);
  const now = (): number => Math.floor(clock.monotonicMs() / 1_000);
  return {
    exchangeEnded: (summary: ExchangeSummary) => count(summary, secondAt(ring, now())),
    /** The endings of the last minute. */
    read(): EndingCounts {
      const first = now() - windowSeconds + 1;
      const seconds = ring.filter(({ number }) => number >= first);
      const age = Math.floor((clock.monotonicMs() - startedMs) / 1_000);
      const sum = (figure: (second: Second) => number): number =>
        seconds.reduce((total, second) => total + figure(second), 0);
      return {
        seconds: Math.min(windowSeconds, Math.max(1, age)),
        requests: sum(({ requests }) => requests),
        outputTokens: sum(({ outputTokens }) => outputTokens),
        firstTexts: addFirstTexts(seconds),
        endings: addEndings(seconds.map(({ endings }) => endings.entries())),
      };
    },
  };
}

function emptySecond(): Second {
  return {
    number: -1,
    requests: 0,
    outputTokens: 0,
    endings: new Map(),
    firstTexts: new Uint32Array(timeBounds),
  };
}

/** The place of a second; what an earlier one left there is removed. */
function secondAt(ring: readonly Second[], number: number): Second {
  const second = ring[number % windowSeconds] as Second;
  if (second.number !== number) {
    Object.assign(second, { number, requests: 0, outputTokens: 0 });
    second.endings.clear();
    second.firstTexts.fill(0);
  }
  return second;
}

function count({ outcome, usage, protocol, mode, firstTextMs }: ExchangeSummary, second: Second): void {
  second.requests++;
  second.endings.set(outcome, (second.endings.get(outcome) ?? 0) + 1);
  second.outputTokens += usage?.outputTokens ?? 0;
  if (protocol === 'passthrough' || mode !== 'stream' || firstTextMs === null) return;
  const at = boundOf(firstTextMs);
  second.firstTexts[at] = (second.firstTexts[at] ?? 0) + 1;
}

function addFirstTexts(seconds: readonly Second[]): EndingCounts['firstTexts'] {
  const sums = new Float64Array(timeBounds);
  for (const { firstTexts } of seconds)
    firstTexts.forEach((times, at) => (sums[at] = (sums[at] ?? 0) + times));
  return [...sums.entries()].filter(([, times]) => times > 0);
}

function addEndings(all: readonly Iterable<readonly [EndOutcome, number]>[]): EndingCounts['endings'] {
  const sums: Partial<Record<EndOutcome, number>> = {};
  for (const endings of all)
    for (const [outcome, times] of endings) sums[outcome] = (sums[outcome] ?? 0) + times;
  return sums;
}

/** Adds up what ended on several processes. A new one counts as long as the oldest does: its figures are of that time, too. */
export function addUpEndings(all: readonly EndingCounts[]): RecentEndings {
  const sum = (figure: (counts: EndingCounts) => number): number =>
    all.reduce((total, counts) => total + figure(counts), 0);
  const quantile = quantilesOf(all.flatMap(({ firstTexts }) => firstTexts));
  return {
    seconds: Math.max(1, ...all.map(({ seconds }) => seconds)),
    requests: sum(({ requests }) => requests),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    firstTextMs: { p50: quantile(0.5), p99: quantile(0.99) },
    endings: addEndings(all.map(({ endings }) => Object.entries(endings) as [EndOutcome, number][])),
  };
}
