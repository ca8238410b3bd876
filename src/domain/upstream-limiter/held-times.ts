import type { CallInFlight } from './load.ts';

/** How many times are remembered: with more, a change of the upstream shows later, with fewer, chance has a larger part. */
const maxTimes = 100;

/** The times that are remembered, sorted, and what follows from them, in milliseconds. */
interface Sample {
  readonly timesMs: readonly number[];
  readonly meanMs: number;
  /** What a request that is looked at, at any moment, needs on from there: a long one is met more often than a short one. */
  readonly restMs: number;
}

/**
 * How long requests are in progress at an upstream, by the latest ones. How long one goes on follows from those that took
 * longer than it has so far: where most take the same time it is soon over, where any length is as likely it never is.
 */
export class HeldTimes {
  readonly #timesMs: number[] = [];
  /** Where the next time is written: over the oldest one. */
  #next = 0;
  /** What the times say; `null` until it is asked for after a change of them. */
  #sample: Sample | null = null;

  /** Notes for how long a request was in progress, in milliseconds. */
  add(heldMs: number): void {
    this.#timesMs[this.#next] = heldMs;
    this.#next = (this.#next + 1) % maxTimes;
    this.#sample = null;
  }

  /**
   * When the next of some requests gets one of `permits`, if `ahead` others get one before, in milliseconds from now: the mean.
   * `calls` are in progress, oldest first. All permits work on what those and the ones ahead still need; what is left of it
   * when the request's turn comes is in the other permits. As long as no request has ended, they are expected to take at
   * least as long as the oldest one has.
   */
  waitMs(
    calls: readonly Pick<CallInFlight, 'startedMs'>[],
    permits: number,
    ahead: number,
    nowMs: number,
  ): number {
    if (ahead < permits - calls.length) return 0;
    const agesMs = calls.map(({ startedMs }) => nowMs - startedMs);
    const sample = this.#sampleWith(agesMs[0] ?? 0);
    const workMs = leftMs(agesMs, sample) + ahead * sample.meanMs;
    return Math.max(0, workMs - (permits - 1) * sample.restMs) / Math.max(1, permits);
  }

  #sampleWith(oldestMs: number): Sample {
    if (this.#timesMs.length === 0) return sampleOf([oldestMs]);
    return (this.#sample ??= sampleOf(this.#timesMs.toSorted((a, b) => a - b)));
  }
}

function sampleOf(timesMs: readonly number[]): Sample {
  let sum = 0;
  let squares = 0;
  for (const timeMs of timesMs) {
    sum += timeMs;
    squares += timeMs * timeMs;
  }
  return { timesMs, meanMs: sum / timesMs.length, restMs: sum === 0 ? 0 : squares / (2 * sum) };
}

/** What requests that have taken so long, longest first, still need together. */
function leftMs(agesMs: readonly number[], { timesMs, meanMs }: Sample): number {
  let first = timesMs.length;
  let longerMs = 0;
  let left = 0;
  for (const ageMs of agesMs) {
    for (; first > 0 && (timesMs[first - 1] ?? 0) > ageMs; first--) longerMs += timesMs[first - 1] ?? 0;
    const longer = timesMs.length - first;
    left += longer === 0 ? meanMs : longerMs / longer - ageMs;
  }
  return left;
}
