import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createSharedLimiter } from '../../src/coordination/shared-limiter.ts';
import type { Group } from '../../src/domain/limits/groups.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Exchange } from '../../src/pipeline/exchange.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { releaseGroupSlot, takeSlots } from '../../src/pipeline/admission/take-slots.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { createMemorySlots } from '../support/memory-slot-store.ts';

const group: Group = { id: 'group:research', name: 'research', concurrency: 2, budget: null };
const limits = { concurrency: 1, requestsPerMinute: 100, queueWaitMs: 60_000 };

/** Slots that processes share, and a limiter over them whose next giving back of a slot of the group may fail. */
function setUp() {
  const clock = createFakeClock();
  const slots = createMemorySlots(() => clock.monotonicMs());
  const store = slots.storeOf(() => 'owner');
  const other = slots.storeOf(() => 'another process');
  const failing = { isOn: false };
  const taken: string[] = [];
  const limiter = createSharedLimiter(
    {
      ...store,
      take(request) {
        taken.push(request.keyId);
        return store.take(request);
      },
      release: async (keyId, requestId) => {
        if (failing.isOn && keyId === group.id) throw new StorageError('away');
        return store.release(keyId, requestId);
      },
    },
    { clock, ready: Promise.resolve(), onFault: () => {}, defaults: () => limits, groupOf: () => null },
  );
  onTestFinished(() => limiter.close());
  const telemetry = { waitBegan() {}, waitEnded() {} };
  const inFlight = { draining: new AbortController().signal };
  const ports = { clock, limiter, inFlight, telemetry } as unknown as Ports;
  const begin = (requestId: string) =>
    ({ requestId, interruption: new AbortController(), groupSlot: null }) as unknown as Exchange;
  const ofGroup = () => slots.slots.filter(({ keyId }) => keyId === group.id).length;
  return { clock, limiter, other, ports, begin, failing, taken, ofGroup };
}

test('a slot of a group that is given back late is not the one that the same request took meanwhile', async () => {
  const { clock, other, ports, begin, failing, ofGroup } = setUp();
  await other.take({ keyId: 'key', requestId: 'first', limits, mayWait: false });
  const exchange = begin('second');
  failing.isOn = true;
  const taking = takeSlots({ keyId: 'key', group, limits, opening: null }, exchange, ports);
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  expect(ofGroup()).toBe(1);
  // The request waits for the slot of its key; what it had of the group is given back with the next attempt.
  await other.release('key', 'first');
  failing.isOn = false;
  for (let second = 0; second < 5; second++) {
    clock.advance(1_000);
    for (let turn = 0; turn < 5; turn++) await setImmediate();
  }
  expect(await taking).toMatchObject({ decision: { verdict: 'granted' }, groupRefusal: null });
  expect(ofGroup()).toBe(1);
  await releaseGroupSlot(exchange, ports);
  expect(ofGroup()).toBe(0);
}, 10_000);

test('a client whose key has no slot left takes none of its group for a moment, however often it asks', async () => {
  const { limiter, ports, begin, taken, ofGroup } = setUp();
  const { signal } = new AbortController();
  const impatient = { ...limits, queueWaitMs: 0 };
  await limiter.acquire('key', 'first', impatient, signal);
  taken.length = 0;
  for (let number = 0; number < 100; number++) {
    const asked = await takeSlots(
      { keyId: 'key', group, limits: impatient, opening: null },
      begin(`${number}`),
      ports,
    );
    expect(asked).toMatchObject({ decision: { verdict: 'concurrency' }, groupRefusal: null });
  }
  expect(taken).toEqual([]);
  await limiter.release('key', 'first');
  expect(
    await takeSlots({ keyId: 'key', group, limits: impatient, opening: null }, begin('last'), ports),
  ).toMatchObject({
    decision: { verdict: 'granted' },
  });
  expect(ofGroup()).toBe(1);
});
