import { stepsOfAnswer, stepsOfKept } from './answer-steps.ts';
import type { BrokenRule } from './claim-rules.ts';
import { copyOf, works } from './claim-state.ts';
import type { Failure, State } from './claim-state.ts';
import { stepsOfClient } from './client-steps.ts';
import { stepsOfProcess } from './process-steps.ts';
import type { Step } from './search.ts';

/** What the steps of a state are made with. */
export interface Steps {
  readonly state: State;
  /** How often a claim may run: no rule bounds it in a model with a broken one. */
  readonly mostRuns: number;
  breaks(rule: BrokenRule): boolean;
  /** Adds a step. A failure uses up one of those that may still happen; nothing relies on what is `given up`. */
  add(name: string, failure: Failure | 'given up' | null, change: (next: State) => void): void;
}

/** All that may happen next in a state, or what of it is wanted by its name: nothing is copied for the rest. */
export function stepsFrom(
  state: State,
  broken: BrokenRule | null,
  mostRuns: number,
  isWanted: (name: string) => boolean = () => true,
): readonly Step<State>[] {
  const found: Step<State>[] = [];
  const steps: Steps = {
    state,
    mostRuns,
    breaks: (rule) => rule === broken,
    add(name, failure, change) {
      const isFailure = failure !== null && failure !== 'given up';
      if (isFailure && (state.failures === 0 || state.most[failure] === 0)) return;
      if (!isWanted(name)) return;
      const next = copyOf(state);
      if (isFailure) {
        next.failures--;
        next.most[failure]--;
      }
      change(next);
      found.push({ name, next, isOptional: failure !== null });
    },
  };
  for (const client of state.clients.keys()) stepsOfClient(steps, client);
  for (const [at, process] of state.processes.entries()) {
    for (const claim of state.claims.keys()) {
      if (works(process)) stepsOfAnswer(steps, at, claim, process);
      stepsOfKept(steps, at, claim, process);
    }
    stepsOfProcess(steps, at, process);
  }
  steps.add('the database crashes', 'crash', (next) => {
    for (const claim of next.claims) claim.row = claim.onDisk;
  });
  return found;
}
