import { faultOf, waitsFor } from './claim-faults.ts';
import type { BrokenRule } from './claim-rules.ts';
import { nameOf, startOf } from './claim-state.ts';
import type { Size, State } from './claim-state.ts';
import { Steps } from './claim-steps.ts';
import type { Model } from './search.ts';

/** The model of claims: what is written of them, what processes have in memory, and what their clients get. */
export function claimModel(size: Size, broken: BrokenRule | null = null): Model<State> {
  const start = startOf(size);
  const failures = (state: State): number => Object.values(state.left).reduce((sum, left) => sum - left, 0);
  const allowed = -failures(start);
  return {
    start,
    steps: (state) => new Steps(state, broken, 2 + allowed).all(),
    faultOf: (state) => faultOf(state, allowed + failures(state)),
    waitsFor,
    nameOf,
  };
}
