import { expect } from 'vitest';

/**
 * The measured loops of one side. The fastest one counts: it is one that was not interrupted by another process, and a
 * loop of a few milliseconds seldom is.
 */
const rounds = 40;

/** How often a ratio above its bound is measured again: other processes may have disturbed one measurement. */
const maxAttempts = 4;

/**
 * Expects that a piece of work takes at most so many times as long as a reference, in the same process and in turns with
 * it, so that neither the machine nor its load decides. The bounds are about twice what was measured when they were
 * written: they notice that work was added, not that it got a little slower.
 */
export function expectCostRatio(work: () => void, reference: () => void, bound: number): void {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < maxAttempts && least > bound; attempt++)
    least = Math.min(least, measureRatio(work, reference));
  expect(least).toBeLessThanOrEqual(bound);
}

function measureRatio(work: () => void, reference: () => void): number {
  let [own, base] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < rounds; round++) {
    own = Math.min(own, durationMs(work));
    base = Math.min(base, durationMs(reference));
  }
  return own / base;
}

function durationMs(work: () => void): number {
  const startedMs = performance.now();
  work();
  return performance.now() - startedMs;
}
