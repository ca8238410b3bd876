import { propertyRun } from './property-run.ts';

/** Random numbers from 0 up to 1, repeatable by a seed (the one that is given, or `FC_SEED`); mulberry32. */
export function randomNumbers(given: number | null = null): {
  readonly random: () => number;
  readonly seed: number;
} {
  const seed = given ?? propertyRun().seed;
  return { random: seededNumbers(seed), seed };
}

/** The random numbers of one seed. */
export function seededNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
