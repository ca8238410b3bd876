/**
 * The number of runs of a property, and its seed. A failing property prints its seed; `FC_SEED` repeats it.
 */
export function propertyRun(numRuns = 300): { readonly numRuns: number; readonly seed: number } {
  // Read at each call: the scorecard sets the variable after this module is loaded.
  return { numRuns, seed: Number(process.env['FC_SEED'] ?? ownSeed) };
}

const ownSeed = Date.now() % 2 ** 31;
