import fc from 'fast-check';

const ownSeed = Date.now() % 2 ** 31;

/**
 * The number of runs of a property, `PROPERTY_TIMES` times as many as in the short suite, and its seed: `FC_SEED`, which
 * `config/vitest.config.ts` chooses for a whole run, and prints.
 */
export function propertyRun(shortRuns = 100): { readonly numRuns: number; readonly seed: number } {
  // Read at each call: the scorecard sets the seed after this module is loaded.
  const { FC_SEED: seed = ownSeed, PROPERTY_TIMES: times = '1' } = process.env;
  return { numRuns: Math.ceil(shortRuns * Number(times)), seed: Number(seed) };
}

type Arbitraries<Values extends [unknown, ...unknown[]]> = {
  [At in keyof Values]: fc.Arbitrary<Values[At]>;
};

/** Checks a property in `shortRuns` runs, or as many times more as are asked for. */
export function forAll<Values extends [unknown, ...unknown[]]>(
  shortRuns: number,
  ...property: [...Arbitraries<Values>, (...values: Values) => boolean | void]
): void {
  fc.assert(fc.property<Values>(...property), propertyRun(shortRuns));
}

/** The same for one that takes time. */
export function forAllAsync<Values extends [unknown, ...unknown[]]>(
  shortRuns: number,
  ...property: [...Arbitraries<Values>, (...values: Values) => Promise<boolean | void>]
): Promise<void> {
  return fc.assert(fc.asyncProperty<Values>(...property), propertyRun(shortRuns));
}
