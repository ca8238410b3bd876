/**
 * The number of runs of a property, `PROPERTY_TIMES` times as many as in the short suite, and its seed: `FC_SEED`, which
 * `config/vitest.config.ts` chooses for a whole run, and prints.
 */
export function propertyRun(shortRuns = 100): { readonly numRuns: number; readonly seed: number } {
  // Read at each call: the scorecard sets the seed after this module is loaded.
  const { FC_SEED: seed = ownSeed, PROPERTY_TIMES: times = '1' } = process.env;
  return { numRuns: Math.ceil(shortRuns * Number(times)), seed: Number(seed) };
}

const ownSeed = Date.now() % 2 ** 31;
