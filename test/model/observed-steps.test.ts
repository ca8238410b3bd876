import { describe, expect, test } from 'vitest';
import { propertyRun } from '../support/property-run.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { describeEvent } from './claim-log.ts';
import type { LogEvent } from './claim-log.ts';
import { claimModel } from './claim-model.ts';
import { brokenRules, sizeOf } from './claim-rules.ts';
import type { BrokenRule } from './claim-rules.ts';
import type { State } from './claim-state.ts';
import { nothingObserved, observeStep, withoutFailures } from './observed-steps.ts';
import type { Observed } from './observed-steps.ts';
import { readLog } from './read-log.ts';
import { search } from './search.ts';
import type { Model } from './search.ts';

const mostStates = 100_000;

/** How many steps more than to a fault are gone, until a log shows it. */
const moreSteps = 3;

/** Ways at random, and what there is of everything in them. */
const walks = propertyRun(100).numRuns;
const walkSteps = 30;
/** How many of their steps are no failures, and no client that leaves, beside those that happen to be none. */
const goesOn = 0.6;
const size = {
  claims: 1,
  clients: 2,
  others: 0,
  processes: 2,
  failures: 4,
  most: { kill: 1, stop: 2, loss: 2, upstream: 2, crash: 1 },
};

function chargesOf({ claims: [claim] }: State): LogEvent {
  return { what: 'is charged', times: claim?.charges ?? 0 };
}

/** What is behind a way of a model, with what was observed of it. */
interface Reached {
  readonly state: State;
  readonly observed: Observed;
}

/** Goes the steps with some names, from the start of a model. */
function go(model: Model<State>, names: readonly string[]): Reached {
  let reached: Reached = { state: model.start, observed: nothingObserved(model.start) };
  for (const name of names) {
    const step = [...model.steps(reached.state)].find((one) => one.name === name);
    if (step === undefined) throw new Error(`there is no step '${name}'`);
    reached = { state: step.next, observed: observeStep(reached.state, name, step.next, reached.observed) };
  }
  return reached;
}

/** The first log that is refused, of those that go on behind a way, with so many steps more at the most; `null` without one. */
function findRefused(model: Model<State>, from: Reached, steps: number): readonly LogEvent[] | null {
  let edge = [from];
  const [seen, read] = [new Set<string>(), new Set<string>()];
  for (let step = 0; step <= steps; step++) {
    const next: Reached[] = [];
    for (const { state, observed } of edge) {
      const log = [...observed.log, chargesOf(state)];
      const text = JSON.stringify(log);
      if (!read.has(text) && readLog(log)?.refused !== null) return log;
      read.add(text);
      for (const { name, next: after } of model.steps(state)) {
        const reached = { state: after, observed: observeStep(state, name, after, observed) };
        const found = JSON.stringify([after, reached.observed.log]);
        if (!seen.has(found)) next.push(reached);
        seen.add(found);
      }
    }
    edge = next;
  }
  return null;
}

/** What no log shows, and why. */
const unseen: Readonly<Partial<Record<BrokenRule, string>>> = {
  'what is settled is joined': 'who waits without end is a fault of a run by itself',
  'an owner does not free what it does not have': 'likewise',
  'a process begins without a lease': 'likewise',
  'what has ended is answered to none': 'likewise',
  'a join does not end the grace': 'it does not say when a request was read',
  'an owner goes on when its lease was ended':
    'it does not say how long something lasts: calls at a time are measured',
  'a run without clients goes on': 'likewise',
  'a begin that was made is taken for another one': 'of such a run there is no call',
  'another request is answered with what is there': 'there are no such requests',
};

describe('what is observed of the steps of the model', () => {
  test.each(Object.entries(brokenRules))('is refused where %s, unless no log shows that', (rule, finding) => {
    const broken = withoutFailures(claimModel(sizeOf(finding), rule as BrokenRule));
    const chargesTwice: Model<State> = {
      ...broken,
      faultOf: ({ claims: [claim] }) => ((claim?.charges ?? 0) > 1 ? 'is charged twice' : null),
      waitsFor: () => null,
    };
    const found = [broken, chargesTwice].some((model) => {
      const { fault } = search(model, mostStates);
      return fault !== null && findRefused(model, go(model, fault.steps), moreSteps) !== null;
    });
    expect(found).toBe(unseen[rule as BrokenRule] === undefined);
  });

  test('is allowed where no rule is broken, whatever happens', () => {
    const model = withoutFailures(claimModel(size));
    const random = seededNumbers(1);
    for (let walk = 0; walk < walks; walk++) {
      let reached = go(model, []);
      for (let step = 0; step < walkSteps; step++) {
        const all = [...model.steps(reached.state)];
        const relied = all.filter(({ isOptional }) => !isOptional);
        const steps = relied.length > 0 && random() < goesOn ? relied : all;
        const chosen = steps[Math.floor(random() * steps.length)];
        if (chosen === undefined) break;
        const observed = observeStep(reached.state, chosen.name, chosen.next, reached.observed);
        reached = { state: chosen.next, observed };
      }
      const { log } = reached.observed;
      const reading = readLog([...log, chargesOf(reached.state)]);
      expect(reading?.refused === null ? null : log.map(describeEvent)).toBeNull();
    }
  });
});
