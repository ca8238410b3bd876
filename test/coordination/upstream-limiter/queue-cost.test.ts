import { expect, test, vi } from 'vitest';
import { Roster } from '../../../src/shared/roster.ts';
import type { Target } from '../../../src/domain/upstreams/sent-request.ts';
import { at, openLimiters, permitOf } from '../../support/limiter-scene.ts';
import type { Came } from '../../support/limiter-scene.ts';

const waiting = 1_000;

/** A queue of 1,000 requests of ten keys, and how often those of them that wait are read. */
function fullQueue() {
  const scene = openLimiters({ far: { maxInFlight: 4, queue: waiting } });
  let reads = 0;
  const tokens = {
    get input() {
      reads++;
      return 1;
    },
    output: 1,
  };
  const ids = Array.from({ length: 4 + waiting }, (_, number) => `${number % 10} ${number}`);
  for (const id of ids) scene.come(id, { tokens });
  return {
    scene,
    ids: ids.slice(4),
    readsOf: (work: () => void): number => {
      const before = reads;
      work();
      return reads - before;
    },
  };
}

test('a refusal at a full queue reads none of those that wait', () => {
  const { scene, readsOf } = fullQueue();
  const reads = readsOf(() => {
    expect(scene.come('late').result).toMatchObject({ kind: 'full', waiting });
    expect(scene.limiters.pausedMs(at('far'))).toBe(0);
    expect(scene.limiters.views()).toMatchObject([{ waiting }]);
  });
  expect(reads).toBe(0);
});

test('a look at all that wait reads each of them as often, however many there are', () => {
  const { scene, ids, readsOf } = fullQueue();
  const refresh = (): void => {
    for (const id of ids) expect(scene.limiters.waiting(id)).not.toBeNull();
  };
  // Once each to be counted as ahead of all others and of those for the same model, and once as the one that waits.
  expect(readsOf(refresh)).toBe(3 * waiting);
  // The order has not changed.
  expect(readsOf(refresh)).toBe(waiting);
});

test('requests that wait for many models that pause cost each other request as much as if they waited for one', () => {
  const models = 300;
  let asked = 0;
  const pausedMs = ({ model }: Target): number => {
    asked++;
    return model === 'free' ? 0 : 20_000;
  };
  const { come, limiters } = openLimiters({ far: { maxInFlight: 9, queue: waiting } }, { pausedMs });
  const ids = Array.from({ length: waiting - 1 }, (_, number) => `k${number}`);
  for (const [number, id] of ids.entries())
    come(id, { keyId: id, targets: [at('far', `paused${number % models}`)] });
  expect(limiters.views()).toMatchObject([{ waiting: waiting - 1 }]);
  const steps = vi.spyOn(Roster.prototype, 'first', 'get');
  const next = vi.spyOn(Roster.prototype, 'after');
  const costOf = (work: () => void): number => {
    asked = 0;
    steps.mockClear();
    next.mockClear();
    work();
    return asked + steps.mock.calls.length + next.mock.calls.length;
  };
  // Once for each key, to find the first one that waits, and a few times for each model.
  const most = waiting + 4 * models;
  const came: Came[] = [];
  const arrive = (): void => void came.push(come('free', { targets: [at('far', 'free')] }));
  expect(costOf(arrive)).toBeLessThan(most);
  expect(costOf(() => came.forEach((each) => permitOf(each).release(null)))).toBeLessThan(most);
  expect(costOf(() => void come('late', { targets: [at('far', 'paused0')] }))).toBeLessThan(3 * most);
  expect(costOf(() => void limiters.views())).toBeLessThan(most);
  expect(costOf(() => ids.forEach((id) => limiters.waiting(id)))).toBeLessThan(8 * most);
});
