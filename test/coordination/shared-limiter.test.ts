import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createSharedLimiter } from '../../src/coordination/shared-limiter.ts';
import type { LimitDecision, Limits } from '../../src/domain/limits/limits.ts';
import type { SlotStore } from '../../src/domain/ports/slot-store.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { defaultLimits, describeLimiter } from '../conformance/limiter.ts';
import type { TestedLimiter } from '../conformance/limiter.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { createMemorySlots } from '../support/memory-slot-store.ts';
import { openedRecord } from '../support/stored-rows.ts';

const create = (): TestedLimiter => {
  const clock = createFakeClock();
  const keys = new Map<string, Partial<Limits>>();
  const store = createMemorySlots(
    () => clock.monotonicMs(),
    () => true,
    () => false,
    (keyId) => keys.get(keyId) ?? null,
  ).storeOf(() => 'owner');
  const limiter = createSharedLimiter(store, {
    clock,
    ready: Promise.resolve(),
    onFault: () => {},
    defaults: () => defaultLimits,
    groupOf: () => null,
  });
  return {
    limiter,
    monotonicMs: () => clock.monotonicMs(),
    advance: (durationMs) => clock.advance(durationMs),
    setLimits: async (keyId, own) => void keys.set(keyId, own),
    settled: () => setImmediate(),
    close: () => limiter.close(),
  };
};
describeLimiter('the shared limiter over a store in memory', create, { startsPerWindow: 500 });

const { signal } = new AbortController();
const limits = { concurrency: 2, requestsPerMinute: 1_000, queueWaitMs: 0 };
const patient = { ...limits, queueWaitMs: 10_000 };

/** Two processes over the same slots; a call of the store can be held back or made to fail. */
function setUp(ready = Promise.resolve()) {
  const clock = createFakeClock();
  const ended = new Set<string>();
  const isEnded = (owner: string): boolean => ended.has(owner);
  const slots = createMemorySlots(
    () => clock.monotonicMs(),
    (owner) => !isEnded(owner),
    isEnded,
  );
  const faults: string[] = [];
  const nodes = ['a', 'b'].map((owner) => {
    const plain = slots.storeOf(() => node.owner);
    const node = {
      owner,
      /** The names of the steps that were asked for. */
      asked: [] as string[],
      /** Runs before each step, and after it. */
      before: async (_step: string): Promise<void> => {},
      after: async (_step: string): Promise<void> => {},
    };
    const steps = Object.entries(plain).filter(([name]) => name !== 'owner');
    const watchedSteps = Object.fromEntries(
      steps.map(([name, step]) => [
        name,
        async (...values: readonly unknown[]) => {
          node.asked.push(name);
          await node.before(name);
          const answer: unknown = await (step as (...all: readonly unknown[]) => unknown)(...values);
          await node.after(name);
          return answer;
        },
      ]),
    );
    const watched = { ...watchedSteps, owner: () => node.owner } as unknown as SlotStore;
    const limiter = createSharedLimiter(watched, {
      clock,
      ready,
      onFault: (message) => void faults.push(message),
      defaults: () => limits,
      groupOf: () => null,
    });
    onTestFinished(() => limiter.close());
    return Object.assign(node, { limiter, store: watched });
  });
  const [a, b] = nodes;
  if (a === undefined || b === undefined) throw new Error('there are two');
  return { a, b, clock, slots, ended, faults, settled: () => setImmediate() };
}

async function verdict(decision: Promise<LimitDecision>): Promise<LimitDecision['verdict']> {
  return (await decision).verdict;
}

test('two processes together grant no more slots than the limit', async () => {
  const { a, b } = setUp();
  expect(await verdict(a.limiter.acquire('key', '1', limits, signal))).toBe('granted');
  expect(await verdict(b.limiter.acquire('key', '2', limits, signal))).toBe('granted');
  expect(await a.limiter.acquire('key', '3', limits, signal)).toMatchObject({
    verdict: 'concurrency',
    inFlight: 2,
  });
  await b.limiter.release('key', '2');
  expect(await verdict(a.limiter.acquire('key', '4', limits, signal))).toBe('granted');
});

test('a process that has all slots of a key refuses without asking the store', async () => {
  const { a } = setUp();
  for (const id of ['1', '2']) await a.limiter.acquire('key', id, limits, signal);
  a.asked = [];
  for (let id = 3; id < 1_000; id++)
    expect(await verdict(a.limiter.acquire('key', `${id}`, limits, signal))).toBe('concurrency');
  expect(a.asked).toEqual([]);
  await a.limiter.release('key', '1');
  expect(await verdict(a.limiter.acquire('key', 'last', limits, signal))).toBe('granted');
});

test('a record is begun with a slot only where there is likely to be one', async () => {
  const { a, b } = setUp();
  const take = vi.spyOn(a.store, 'take');
  const begun = async (id: string): Promise<unknown> => {
    await a.limiter.acquire('key', id, limits, signal, { ...openedRecord, requestId: id });
    return take.mock.lastCall?.[0].opening?.requestId ?? null;
  };
  expect(await begun('1')).toBe('1');
  expect(await begun('2')).toBe('2');
  await a.limiter.release('key', '2');
  await b.limiter.acquire('key', 'other', limits, signal);
  // It is refused, which its process could not know.
  expect(await begun('3')).toBe('3');
  await b.limiter.release('key', 'other');
  expect(await begun('4')).toBe(null);
  await a.limiter.release('key', '4');
  // Two at once, where one slot is left: the second one is likely to be refused.
  take.mockClear();
  await Promise.all(['5', '6'].map(begun));
  expect(take.mock.calls.map(([{ requestId, opening = null }]) => [requestId, opening !== null])).toEqual([
    ['5', true],
    ['6', false],
  ]);
});

test('a key without starts left is refused without asking the store, until a start is given back', async () => {
  const { a, b, clock } = setUp();
  const scarce = { ...limits, requestsPerMinute: 1 };
  await b.limiter.acquire('key', '1', scarce, signal);
  await b.limiter.release('key', '1');
  expect(await verdict(a.limiter.acquire('key', '2', scarce, signal))).toBe('rate');
  a.asked = [];
  clock.advance(59_999);
  expect(await a.limiter.acquire('key', '3', scarce, signal)).toMatchObject({ verdict: 'rate', resetMs: 1 });
  expect(a.asked).not.toContain('take');
  clock.advance(1);
  expect(await verdict(a.limiter.acquire('key', '4', scarce, signal))).toBe('granted');
});

test('a raised limit counts at once, although a refusal is remembered', async () => {
  const { a } = setUp();
  const scarce = { ...limits, requestsPerMinute: 1 };
  await a.limiter.acquire('key', '1', scarce, signal);
  expect(await verdict(a.limiter.acquire('key', '2', scarce, signal))).toBe('rate');
  expect(await verdict(a.limiter.acquire('key', '3', limits, signal))).toBe('granted');
});

test('a client that goes on asking while another process has the slots costs one call for each round trip', async () => {
  const { a, b } = setUp();
  for (const id of ['1', '2']) await b.limiter.acquire('key', id, limits, signal);
  await a.limiter.acquire('key', '3', limits, signal);
  a.asked = [];
  const answered = Promise.withResolvers<void>();
  a.before = () => answered.promise;
  const calls = Array.from({ length: 100 }, (_, id) =>
    a.limiter.acquire('key', `again ${id}`, limits, signal),
  );
  answered.resolve();
  expect((await Promise.all(calls)).filter((decision) => decision.verdict === 'concurrency')).toHaveLength(
    100,
  );
  expect(a.asked).toEqual(['take', 'take']);
});

test('a client that goes on asking for a place in a full queue costs no call, until a place is free', async () => {
  const { a, settled } = setUp();
  const one = { ...patient, concurrency: 1 };
  const leaving = new AbortController();
  for (let id = 0; id < 101; id++)
    void a.limiter.acquire('key', `${id}`, one, id === 1 ? leaving.signal : signal);
  await settled();
  a.asked = [];
  for (let id = 0; id < 100; id++)
    expect(await verdict(a.limiter.acquire('key', `more ${id}`, one, signal))).toBe('concurrency');
  expect(a.asked).toEqual([]);
  leaving.abort();
  await settled();
  a.asked = [];
  void a.limiter.acquire('key', 'last', one, signal);
  await settled();
  expect(a.asked).toEqual(['take']);
});

test('a call that came after another one was sent does not share its refusal', async () => {
  const { a, b, settled } = setUp();
  for (const id of ['1', '2']) await b.limiter.acquire('key', id, limits, signal);
  await a.limiter.acquire('key', '3', limits, signal);
  // The store has decided, and its answer is on its way.
  const answered = Promise.withResolvers<void>();
  a.after = () => answered.promise;
  const before = a.limiter.acquire('key', '4', limits, signal);
  await settled();
  await b.limiter.release('key', '1');
  const after = a.limiter.acquire('key', '5', limits, signal);
  answered.resolve();
  expect([await verdict(before), await verdict(after)]).toEqual(['concurrency', 'granted']);
});

test('requests of two processes wait in one queue', async () => {
  const { a, b, clock, settled } = setUp();
  const order: string[] = [];
  const one = { ...patient, concurrency: 1 };
  const wait = async (node: typeof a, id: string): Promise<void> => {
    const decision = await node.limiter.acquire('key', id, one, signal);
    order.push(`${id} ${decision.verdict}`);
  };
  for (const [node, id] of [
    [a, '1'],
    [b, '2'],
    [a, '3'],
    [b, '4'],
  ] as const) {
    void wait(node, id);
    await settled();
  }
  for (const [node, id] of [
    [a, '1'],
    [b, '2'],
    [a, '3'],
  ] as const) {
    await node.limiter.release('key', id);
    clock.advance(250);
    await settled();
  }
  expect(order).toEqual(['1 granted', '2 granted', '3 granted', '4 granted']);
});

test('a wait that ended while its client left gives its slot back', async () => {
  const { a, slots, settled } = setUp();
  const leaving = new AbortController();
  const one = { ...patient, concurrency: 1 };
  await a.limiter.acquire('key', '1', one, signal);
  const waiting = a.limiter.acquire('key', '2', one, leaving.signal);
  await settled();
  a.before = async (step) => {
    if (step === 'leave') await slots.storeOf(() => 'b').release('key', '1');
  };
  leaving.abort();
  expect(await verdict(waiting)).toBe('concurrency');
  await settled();
  expect(slots.slots).toEqual([]);
});

test('a slot that the store did not take back is given back later', async () => {
  const { a, clock, slots, faults, settled } = setUp();
  await a.limiter.acquire('key', '1', limits, signal);
  a.before = async (step) => {
    if (step === 'release') throw new StorageError('away');
  };
  await a.limiter.release('key', '1');
  expect(slots.slots).toHaveLength(1);
  expect(faults).toEqual(['slots could not be given back: they are given back later']);
  a.before = async () => {};
  clock.advance(1_000);
  await settled();
  expect(slots.slots).toEqual([]);
});

test('a key without starts left is asked for again when they are given back, however late its refusal came', async () => {
  const { a, b, clock, settled } = setUp();
  const scarce = { ...limits, requestsPerMinute: 1 };
  await b.limiter.acquire('key', '1', scarce, signal);
  await b.limiter.release('key', '1');
  const answered = Promise.withResolvers<void>();
  a.after = () => answered.promise;
  const refused = a.limiter.acquire('key', '2', scarce, signal);
  await settled();
  clock.advance(2_000);
  answered.resolve();
  expect(await verdict(refused)).toBe('rate');
  clock.advance(58_000);
  expect(await verdict(a.limiter.acquire('key', '3', scarce, signal))).toBe('granted');
});

test('the end of a request waits one second at most for its slot to be given back', async () => {
  const { a, clock } = setUp();
  await a.limiter.acquire('key', '1', limits, signal);
  a.before = () => new Promise(() => {});
  const released = a.limiter.release('key', '1');
  const isOver = () => Promise.race([released.then(() => true), setImmediate().then(() => false)]);
  clock.advance(999);
  expect(await isOver()).toBe(false);
  clock.advance(1);
  expect(await isOver()).toBe(true);
});

test('a slot whose granting was lost on its way is given back', async () => {
  const { a, clock, slots, settled } = setUp();
  a.after = async (step) => {
    if (step === 'take') throw new StorageError('the connection was lost');
  };
  await expect(a.limiter.acquire('key', '1', limits, signal)).rejects.toThrow('the connection was lost');
  expect(slots.slots).toHaveLength(1);
  clock.advance(1_000);
  await settled();
  expect(slots.slots).toEqual([]);
});

test('a slot that was granted after it was given back is found, and that of a running request is kept', async () => {
  const { a, clock, slots, settled } = setUp();
  await a.limiter.acquire('key', 'running', limits, signal);
  const late = slots.storeOf(() => 'a');
  await late.take({ keyId: 'key', requestId: 'late', limits, mayWait: false });
  clock.advance(15_000);
  await settled();
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['running']);
});

test('a request that runs gets the slot again that the store has forgotten, unless it has ended', async () => {
  const { a, b, clock, slots, settled } = setUp();
  for (const id of ['running', 'ended', 'ending'])
    await a.limiter.acquire(`key of ${id}`, id, limits, signal);
  const forget = slots.storeOf(() => 'a');
  for (const id of ['running', 'ending']) await forget.release(`key of ${id}`, id);
  await a.limiter.release('key of ended', 'ended');
  // It ends while the search asks what the store has.
  a.after = async (step) => {
    if (step === 'held') await a.limiter.release('key of ending', 'ending');
  };
  clock.advance(15_000);
  await settled();
  expect(slots.slots).toMatchObject([{ requestId: 'running', keyId: 'key of running', owner: 'a' }]);
  const one = { ...limits, concurrency: 1 };
  expect(await verdict(b.limiter.acquire('key of running', 'another', one, signal))).toBe('concurrency');
  await a.limiter.release('key of running', 'running');
  expect(slots.slots).toEqual([]);
});

test('a request gets its slot again as soon as the database is back, and is searched for once then', async () => {
  const { a, clock, slots, settled } = setUp();
  await a.limiter.acquire('key', '1', limits, signal);
  await slots.storeOf(() => 'a').release('key', '1');
  a.limiter.regained();
  a.limiter.regained();
  await settled();
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['1']);
  a.asked = [];
  clock.advance(14_999);
  await settled();
  expect(a.asked).not.toContain('held');
  clock.advance(1);
  await settled();
  expect(a.asked.filter((step) => step === 'held')).toHaveLength(1);
  await a.limiter.close();
  a.limiter.regained();
  await settled();
  expect(a.asked.filter((step) => step === 'held')).toHaveLength(1);
});

test('connections that come and go cause one search at a time, and one more behind it', async () => {
  const { a, settled } = setUp();
  const gate = Promise.withResolvers<void>();
  a.before = async (step) => {
    if (step === 'held') await gate.promise;
  };
  for (let times = 0; times < 5; times++) {
    a.limiter.regained();
    await settled();
  }
  const searches = () => a.asked.filter((step) => step === 'held').length;
  expect(searches()).toBe(1);
  gate.resolve();
  await settled();
  expect(searches()).toBe(2);
});

test('a slot that was freed with a settlement is not given back again, and counts as free', async () => {
  const { a, clock, slots, settled } = setUp();
  const one = { ...limits, concurrency: 1 };
  await a.limiter.acquire('key', '1', one, signal);
  expect(await verdict(a.limiter.acquire('key', '2', one, signal))).toBe('concurrency');
  await slots.storeOf(() => 'a').release('key', '1');
  a.asked = [];
  a.limiter.freed('key', '1');
  await a.limiter.release('key', '1');
  a.limiter.freed('key', '1');
  expect(a.asked).toEqual([]);
  expect(await verdict(a.limiter.acquire('key', '3', one, signal))).toBe('granted');
  clock.advance(15_000);
  await settled();
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['3']);
});

test('a slot that is restored while its settlement frees it is given back by its request', async () => {
  const { a, clock, slots, settled } = setUp();
  await a.limiter.acquire('key', '1', limits, signal);
  await slots.storeOf(() => 'a').release('key', '1');
  const told = Promise.withResolvers<void>();
  a.before = async (step) => {
    if (step === 'restore') told.resolve();
  };
  clock.advance(15_000);
  await told.promise;
  a.limiter.freed('key', '1');
  await settled();
  expect(slots.slots).toHaveLength(1);
  await a.limiter.release('key', '1');
  expect(slots.slots).toEqual([]);
});

test('a key whose slots can not be restored holds up no other one, and is tried again', async () => {
  const { a, clock, slots, faults, settled } = setUp();
  for (const id of ['1', '2']) {
    await a.limiter.acquire(`key of ${id}`, id, limits, signal);
    await slots.storeOf(() => 'a').release(`key of ${id}`, id);
  }
  let calls = 0;
  a.before = async (step) => {
    if (step === 'restore' && ++calls === 1) throw new StorageError('locked');
  };
  clock.advance(15_000);
  await settled();
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['2']);
  expect(faults).toEqual(['slots of running requests could not be restored: they are restored later']);
  clock.advance(15_000);
  await settled();
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['2', '1']);
});

test('a slot that comes after its request was refused is given back, and another request gets it', async () => {
  const { a, clock, slots, settled } = setUp();
  const one = { ...limits, concurrency: 1 };
  const answered = Promise.withResolvers<void>();
  a.after = () => answered.promise;
  await settled();
  const refused = a.limiter.acquire('key', '1', one, signal);
  clock.advance(3_000);
  await expect(refused).rejects.toThrow('the database takes too long to decide on a slot');
  answered.resolve();
  await settled();
  clock.advance(1_000);
  await settled();
  expect(slots.slots).toEqual([]);
  expect(await verdict(a.limiter.acquire('key', '2', one, signal))).toBe('granted');
});

test('a store that is not open yet is not asked to forget starts, and why a slot is not decided is said', async () => {
  const opening = Promise.withResolvers<void>();
  const { a, clock, settled, faults } = setUp(opening.promise);
  a.before = (step) =>
    step === 'take' ? new Promise(() => {}) : Promise.reject(new StorageError('the database is away'));
  const refused = a.limiter.acquire('key', '1', limits, signal);
  clock.advance(3_000);
  await expect(refused).rejects.toThrow('the database is not open yet');
  a.asked = [];
  clock.advance(60_000);
  await settled();
  expect(a.asked).not.toContain('forgetStarts');
  expect(faults).not.toContain('old starts could not be removed');
  opening.resolve();
  await settled();
  clock.advance(10_000);
  await settled();
  expect(a.asked).toContain('forgetStarts');
  expect(faults).toContain('old starts could not be removed');
});

/** The slots of one key, of which `b` has the only one; some requests of `a` wait. */
async function setUpQueue(waiting: readonly string[] = ['2', '3'], queueWaitMs = 90_000) {
  const nodes = setUp();
  const one = { ...limits, concurrency: 1, queueWaitMs };
  const { a, b, slots, ended, clock, settled } = nodes;
  await b.limiter.acquire('key', '1', one, signal);
  const leaving = new AbortController();
  const ends: string[] = [];
  const waits = waiting.map(async (id) => {
    const said = await verdict(a.limiter.acquire('key', id, one, leaving.signal)).catch(String);
    ends.push(`${id} ${said}`);
  });
  await settled();
  /** Lets time pass in steps in which calls of the store are answered. */
  const pass = async (durationMs: number): Promise<void> => {
    for (let passedMs = 0; passedMs < durationMs; passedMs += 100) {
      clock.advance(100);
      await settled();
    }
  };
  const queue = () => slots.waiting.map(({ requestId, owner }) => `${owner} ${requestId}`);
  return {
    ...nodes,
    ends,
    leaving,
    pass,
    queue,
    done: () => Promise.all(waits),
    /** Ends the lease of `a`, whose places are freed with it unless they are to be found there still. */
    endLease: async (isFreed = true): Promise<void> => {
      ended.add(a.owner);
      if (isFreed) await slots.storeOf(() => 'b').freeLost();
    },
    /** Has the database forget the places, as by a crash. */
    forgetPlaces: async (): Promise<void> => {
      for (const { requestId } of slots.waiting) await slots.storeOf(() => 'b').release('key', requestId);
    },
  };
}

test.each([true, false])(
  'requests that waited when the lease of their process was ended join the queue again at once (places freed: %s)',
  async (isFreed) => {
    const { a, b, slots, ends, endLease, pass, queue } = await setUpQueue();
    await endLease(isFreed);
    a.owner = 'a again';
    await pass(200);
    expect(queue()).toEqual(['a again 2', 'a again 3']);
    await b.limiter.release('key', '1');
    await pass(200);
    expect(ends).toEqual(['2 granted']);
    await a.limiter.release('key', '2');
    await pass(200);
    expect(ends).toEqual(['2 granted', '3 granted']);
    expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['3']);
  },
);

test('requests whose places the database has lost join the queue again within 15 seconds', async () => {
  const { b, ends, forgetPlaces, pass, queue } = await setUpQueue();
  await forgetPlaces();
  await pass(15_000);
  expect(queue()).toEqual(['a 2', 'a 3']);
  await b.limiter.release('key', '1');
  await pass(200);
  expect(ends).toEqual(['2 granted']);
});

test('a request keeps its place in the queue while the database has it', async () => {
  const { a, pass, queue } = await setUpQueue();
  a.asked = [];
  await pass(60_000);
  expect(a.asked).toContain('held');
  expect(a.asked).not.toContain('take');
  expect(queue()).toEqual(['a 2', 'a 3']);
});

test('a request that joins the queue again waits no longer than its time, and leaves nothing behind', async () => {
  const { ends, forgetPlaces, pass, queue, done } = await setUpQueue(['2'], 20_000);
  await forgetPlaces();
  await pass(19_900);
  expect([queue(), ends]).toEqual([['a 2'], []]);
  await pass(100);
  await done();
  expect([queue(), ends]).toEqual([[], ['2 concurrency']]);
});

test('a request that cannot join the queue again yet tries it every second', async () => {
  const { a, forgetPlaces, pass, queue, faults } = await setUpQueue();
  await forgetPlaces();
  a.before = async (step) => {
    if (step === 'take') throw new StorageError('no lease');
  };
  await pass(15_500);
  expect(queue()).toEqual([]);
  expect(faults).toEqual(['requests could not join a queue again']);
  a.before = async () => {};
  await pass(1_000);
  expect(queue()).toEqual(['a 2', 'a 3']);
});

test('a request whose time is up while it has no place is not told that all slots are taken', async () => {
  const { a, b, ends, forgetPlaces, pass, done } = await setUpQueue(['2'], 20_000);
  await forgetPlaces();
  await b.limiter.release('key', '1');
  a.before = async (step) => {
    if (step === 'take') throw new StorageError('away');
  };
  await pass(20_000);
  await done();
  expect(ends).toEqual(['2 StorageError: the database has lost the place of a request in the queue']);
});

test.each(['release', 'take'])(
  'a client that leaves while its request joins the queue again leaves no place and no slot there (during: %s)',
  async (during) => {
    const { a, b, slots, ends, leaving, forgetPlaces, pass, settled, queue, done } = await setUpQueue(['2']);
    await forgetPlaces();
    const answered = Promise.withResolvers<void>();
    a.before = (step) => (step === during ? answered.promise : Promise.resolve());
    await pass(15_000);
    leaving.abort();
    await settled();
    answered.resolve();
    await done();
    expect([queue(), ends]).toEqual([[], ['2 concurrency']]);
    await b.limiter.release('key', '1');
    await pass(1_000);
    expect(slots.slots).toEqual([]);
  },
);

test('a late answer on an earlier place gives no slot to a request that has joined the queue again', async () => {
  const { a, b, ends, slots, endLease, pass, queue, settled } = await setUpQueue(['2']);
  const answered = Promise.withResolvers<void>();
  // The slot is granted, under a lease that is ended then, and what tells of it is on its way.
  a.after = (step) => (step === 'endedWaits' ? answered.promise : Promise.resolve());
  await b.limiter.release('key', '1');
  await pass(100);
  await endLease();
  await b.limiter.acquire('key', 'other', { ...limits, concurrency: 1 }, signal);
  a.owner = 'a again';
  await pass(15_000);
  expect(queue()).toEqual(['a again 2']);
  answered.resolve();
  await settled();
  expect(ends).toEqual([]);
  expect(slots.slots.map(({ requestId }) => requestId)).toEqual(['other']);
});
