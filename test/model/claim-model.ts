import { faultOf, waitsFor } from './claim-faults.ts';
import type { BrokenRule } from './claim-rules.ts';
import { nameOf, startOf } from './claim-state.ts';
import type { Size, State } from './claim-state.ts';
import { stepsFrom } from './claim-steps.ts';
import type { Model } from './search.ts';

/** The model of claims: what is written of them, what processes have in memory, and what their clients get. */
export function claimModel(size: Size, broken: BrokenRule | null = null): Model<State> {
  const start = startOf(size);
  return {
    start,
    steps: (state) => stepsFrom(state, broken, 2 + size.failures),
    faultOf,
    waitsFor,
    nameOf,
  };
}
