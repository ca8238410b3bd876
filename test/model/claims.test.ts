import { describe, expect, test } from 'vitest';
import { claimModel } from './claim-model.ts';
import { brokenRules, sizeOf } from './claim-rules.ts';
import type { BrokenRule } from './claim-rules.ts';
import type { State } from './claim-state.ts';
import { search } from './search.ts';
import type { Model } from './search.ts';

/** `npm run model` has more of everything. */
const clientsOnTwo = { claims: 1, clients: 2, others: 0, processes: 2, failures: 2 };
const none = { kill: 0, stop: 0, loss: 0, upstream: 0, crash: 0 };
const crashes = { ...clientsOnTwo, most: { ...none, kill: 1, stop: 1, upstream: 1, crash: 1 } };
const losses = { ...clientsOnTwo, most: { ...none, kill: 1, loss: 2 } };
const mostStates = 100_000;

describe('claims of two clients in two processes', () => {
  test.each([
    ['processes are killed and stand still, upstreams fail and the database crashes', crashes],
    ['processes lose the database, and are killed then', losses],
    ['one asks for something else', { ...crashes, others: 1, failures: 1 }],
  ])('are charged once, never run twice at a time, and never stay, where %s', (_what, size) => {
    const { fault, states } = search(claimModel(size), mostStates);
    expect(fault).toBeNull();
    expect(states).toBeGreaterThan(5_000);
  });

  test.each(Object.entries(brokenRules))('are found wrong where %s', (rule, finding) => {
    const { fault } = search(claimModel(sizeOf(finding), rule as BrokenRule), mostStates);
    expect(fault?.text).toContain(finding.fault);
  });

  test.each([
    [
      'both listen to one run',
      losses,
      ({ clients, claims }: State) => clients.every(({ is }) => is === 'listening') && claims[0]?.runs === 1,
    ],
    [
      'one gets the answer that another one has left',
      losses,
      ({ clients, processes }: State) =>
        clients.some(({ is }) => is === 'served') &&
        clients.some(({ is }) => is === 'away') &&
        processes.some(({ answers }) => answers[0]?.stands === 'settled'),
    ],
    [
      'one gets the answer, and another one who asks for something else is refused',
      { ...losses, others: 1 },
      ({ clients }: State) =>
        clients.some(({ is }) => is === 'served') && clients.some(({ is }) => is === 'refused'),
    ],
    [
      'one is told what it was charged, as the answer was cut off',
      crashes,
      ({ clients, claims }: State) =>
        clients.some(({ is }) => is === 'told') && claims[0]?.charges === 1 && !claims[0].wasComplete,
    ],
  ])('come to where %s', (text, size, isThere) => {
    const model = { ...claimModel(size), faultOf: (state: State) => (isThere(state) ? text : null) };
    expect(search(model, mostStates).fault?.text).toBe(text);
  });
});

/** A walk over the numbers from 0 that a step function allows. */
function walk(
  steps: (at: number) => readonly (readonly [next: number, isOptional: boolean])[],
  about: Partial<Model<number>>,
): Model<number> {
  return {
    start: 0,
    steps: (at) => steps(at).map(([next, isOptional]) => ({ name: `to ${next}`, next, isOptional })),
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
