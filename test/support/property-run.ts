/**
 * The number of runs of a property, and its seed. A failing property prints its seed; `FC_SEED` repeats it.
 */
export function propertyRun(numRuns = 300): { readonly numRuns: number; readonly seed: number } {
  return { numRuns, seed };
}

const seed = Number(process.env['FC_SEED'] ?? Date.now() % 2 ** 31);
