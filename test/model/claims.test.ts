import { describe, expect, test } from 'vitest';
import { claimModel } from './claim-model.ts';
import { brokenRules } from './claim-rules.ts';
import type { BrokenRule } from './claim-rules.ts';
import { search } from './search.ts';
import type { Model } from './search.ts';

/** `npm run model` has more of everything. */
const small = {
  claims: 1,
  clients: 2,
  processes: 2,
  kills: 1,
  stops: 1,
  losses: 0,
  failures: 1,
  databaseCrashes: 1,
};
const mostStates = 100_000;

describe('claims of two clients in two processes', () => {
  test('are charged once, never run twice at a time, and never stay, whatever fails and in whatever order', () => {
    const { fault, states } = search(claimModel(small), mostStates);
    expect(fault).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  });

  test.each(Object.entries(brokenRules))('are found wrong where %s: %s', (rule) => {
    const { fault } = search(claimModel(small, rule as BrokenRule), mostStates);
    expect(fault?.steps.length).toBeGreaterThan(1);
  });
});

/** A walk over the numbers from 0 that a step function allows. */
function walk(
  steps: (at: number) => readonly (readonly [next: number, isFailure: boolean])[],
  about: Partial<Model<number>>,
): Model<number> {
  return {
    start: 0,
    steps: (at) => steps(at).map(([next, isFailure]) => ({ name: `to ${next}`, next, isFailure })),
    faultOf: () => null,
    waitsFor: () => null,
    nameOf: String,
    ...about,
  };
}

describe('a search', () => {
  const doubling = (at: number) => [1, 2].map((by) => [Math.min(at * by + 1, 20), false] as const);

  test('finds the shortest way to a fault', () => {
    const model = walk(doubling, { faultOf: (at) => (at === 7 ? 'seven' : null) });
    expect(search(model, 100).fault).toEqual({ text: 'seven', steps: ['to 1', 'to 3', 'to 7'] });
  });

  test('visits every state once', () => {
    expect(search(walk(doubling, {}), 100)).toEqual({ states: 21, depth: 6, fault: null });
  });

  test('finds a state that never comes to an end, unless something fails', () => {
    const steps = (at: number) => (at === 0 ? [[1, false] as const] : at === 1 ? [[2, true] as const] : []);
    const waits = walk(steps, { waitsFor: (at) => (at === 2 ? null : `waits at ${at}`) });
    expect(search(waits, 100).fault).toEqual({ text: 'waits at 0, for ever', steps: [] });
    const ends = walk((at) => (at < 2 ? [[at + 1, false]] : []), {
      waitsFor: (at) => (at === 2 ? null : 'waits'),
    });
    expect(search(ends, 100).fault).toBeNull();
  });

  test('proves nothing where there are too many states, and says so', () => {
    expect(() =>
      search(
        walk((at) => [[at + 1, false]], {}),
        1_000,
      ),
    ).toThrow('more than 1000 states');
  });
});
