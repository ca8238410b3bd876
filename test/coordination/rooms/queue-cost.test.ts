import { expect, test } from 'vitest';
import { at, openRooms } from '../../support/room-scene.ts';

const waiting = 1_000;

/** A queue of 1,000 requests of ten keys, and how often those of them that wait are read. */
function fullQueue() {
  const scene = openRooms({ far: { maxInFlight: 4, queue: waiting } });
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
    expect(scene.come('late').entry).toMatchObject({ kind: 'full', waiting });
    expect(scene.rooms.pausedMs(at('far'))).toBe(0);
    expect(scene.rooms.views()).toMatchObject([{ waiting }]);
  });
  expect(reads).toBe(0);
});

test('a look at all that wait reads each of them as often, however many there are', () => {
  const { scene, ids, readsOf } = fullQueue();
  const look = (): void => {
    for (const id of ids) expect(scene.rooms.waiting(id)).not.toBeNull();
  };
  // Once each to be counted as ahead of all others and of those for the same model, and once as the one that waits.
  expect(readsOf(look)).toBe(3 * waiting);
  // The order has not changed.
  expect(readsOf(look)).toBe(waiting);
});
