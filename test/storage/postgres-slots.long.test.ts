import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createSharedLimiter } from '../../src/coordination/shared-limiter.ts';
import type { EndedWait, SlotHolder, SlotStore } from '../../src/domain/ports/slot-store.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { defaultLimits, describeLimiter } from '../conformance/limiter.ts';
import type { TestedLimiter } from '../conformance/limiter.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { createMemorySlots } from '../support/memory-slot-store.ts';
import { openPostgresSlots } from '../support/postgres-slots.ts';
import type { TestedSlots } from '../support/postgres-slots.ts';
import { propertyRun } from '../support/property-run.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** The same slots for keys and requests of a test's own. */
function renamed(store: SlotStore, prefix: string): SlotStore {
  const name = (id: string): string => `${prefix} ${id}`;
  const bare = (id: string): string => id.slice(prefix.length + 1);
  const isMine = ({ requestId }: { readonly requestId: string }): boolean =>
    requestId.startsWith(`${prefix} `);
  const bareWaits = (all: readonly EndedWait[]): readonly EndedWait[] =>
    all.filter(isMine).map(({ requestId, decision }) => ({ requestId: bare(requestId), decision }));
  const bareOf = ({ keyId, requestId }: SlotHolder): SlotHolder => ({
    keyId: bare(keyId),
    requestId: bare(requestId),
  });
  return {
    ...store,
    take: (request) =>
      store.take({ ...request, keyId: name(request.keyId), requestId: name(request.requestId) }),
    release: async (keyId, requestId) => bareWaits(await store.release(name(keyId), name(requestId))),
    endedWaits: async () => bareWaits(await store.endedWaits()),
    leave: (request) =>
      store.leave({ ...request, keyId: name(request.keyId), requestId: name(request.requestId) }),
    followLimits: (defaults, groups) =>
      store.followLimits(defaults, new Map([...groups].map(([id, slots]) => [name(id), slots]))),
    restore: (keyId, requestIds) => store.restore(name(keyId), requestIds.map(name)),
    held: async () => (await store.held()).filter(isMine).map(bareOf),
  };
}

describe.skipIf(postgresAbsence !== null)(`slots in PostgreSQL${absent}`, () => {
  let slots: TestedSlots;
  /** Every test has keys, and a time, of its own. */
  let count = 0;
  const nextRun = () => ({ prefix: `test-${++count}`, startMs: count * 10_000_000 });
  beforeAll(async () => {
    slots = await openPostgresSlots();
  });
  afterAll(() => slots.engine.close());

  const create = async (): Promise<TestedLimiter> => {
    const clock = createFakeClock();
    const { prefix, startMs } = nextRun();
    slots.setTime(startMs);
    const store = renamed(await slots.storeOf(prefix), prefix);
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
      advance(durationMs) {
        clock.advance(durationMs);
        slots.setTime(startMs + clock.monotonicMs());
      },
      setLimits: (keyId, own) => slots.storeLimits(`${prefix} ${keyId}`, own),
      settled: () => slots.settled(),
      close: () => limiter.close(),
    };
  };
  describeLimiter('the shared limiter over PostgreSQL', create, { startsPerWindow: 250 });

  test('grant no slot too many to two processes under load, serve their queue, and are all free at the end', async () => {
    const first = await openPostgres();
    const second = createPostgresEngine({ url: first.database.url, clock: systemClock });
    await second.ready;
    const running = new Map<string, number>();
    let most = 0;
    const verdicts: string[] = [];
    const limiters = await Promise.all(
      [first, second].map(async (engine, number) => {
        const owner = `process-${number}`;
        const renewed = {
          sql: 'INSERT INTO owners (id, since, renewed_at) VALUES (?, 0, ?)',
          values: [owner, 9e15],
        };
        await engine.run([renewed]);
        const store = createSlotStore(engine, () => owner);
        return createSharedLimiter(store, {
          ready: Promise.resolve(),
          clock: systemClock,
          defaults: () => defaultLimits,
          groupOf: () => null,
          onFault: (message) => verdicts.push(message),
        });
      }),
    );
    const one = async (number: number): Promise<void> => {
      const limiter = limiters[number % 2];
      const keyId = `key-${number % 3}`;
      const given = { concurrency: 2, requestsPerMinute: 10_000, queueWaitMs: number % 4 === 0 ? 0 : 60_000 };
      const decision = await limiter?.acquire(
        keyId,
        `request-${number}`,
        given,
        new AbortController().signal,
      );
      verdicts.push(decision?.verdict ?? 'none');
      if (decision?.verdict !== 'granted') return;
      running.set(keyId, (running.get(keyId) ?? 0) + 1);
      most = Math.max(most, running.get(keyId) ?? 0);
      await setImmediate();
      running.set(keyId, (running.get(keyId) ?? 0) - 1);
      await limiter?.release(keyId, `request-${number}`);
    };
    await Promise.all(Array.from({ length: 240 }, (_, number) => one(number)));
    expect(most).toBe(2);
    expect(new Set(verdicts)).toEqual(new Set(['granted', 'concurrency']));
    expect(verdicts.filter((verdict) => verdict === 'granted').length).toBeGreaterThanOrEqual(180);
    const [left, keys, deadlocks] = await first.read(
      [
        'SELECT request_id FROM slots UNION ALL SELECT request_id FROM waiting_requests',
        'SELECT DISTINCT running, waiting FROM key_limits',
        'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      ].map((sql) => ({ sql, values: [] })),
    );
    expect({ left, keys, deadlocks }).toEqual({
      left: [],
      keys: [{ running: 0, waiting: 0 }],
      deadlocks: [{ deadlocks: 0 }],
    });
    await Promise.all(limiters.map((limiter) => limiter.close()));
    await second.close();
    await first.close();
  });

  test('of a process whose lease is over stay until the lease is ended, as its records do', async () => {
    const { prefix, startMs } = nextRun();
    slots.setTime(startMs);
    await slots.clear();
    const owner = `${prefix} owner`;
    const store = renamed(await slots.storeOf(owner), prefix);
    const limits = { concurrency: 1, requestsPerMinute: 10, queueWaitMs: 1 };
    for (const requestId of ['running', 'waiting'])
      await store.take({ keyId: 'key', requestId, limits, mayWait: true });
    await slots.letLeaseRunOut(owner);
    expect(await store.freeLost()).toBe(0);
    expect((await store.held()).map(({ requestId }) => requestId)).toEqual(['running', 'waiting']);
    await slots.endLease(owner);
    expect(await store.freeLost()).toBe(2);
    expect(await store.held()).toEqual([]);
  });

  test('give a start back when it is a minute old, although a process without a lease was the first to ask then', async () => {
    const { prefix, startMs } = nextRun();
    slots.setTime(startMs);
    const [first, ended] = [`${prefix} first`, `${prefix} ended`];
    const [store, lost] = [renamed(await slots.storeOf(first), prefix), await slots.storeOf(ended)];
    const limits = { concurrency: 5, requestsPerMinute: 1, queueWaitMs: 0 };
    const ask = (requestId: string) => store.take({ keyId: 'key', requestId, limits, mayWait: false });
    expect(await ask('1')).toMatchObject({ verdict: 'granted' });
    await slots.endLease(ended);
    slots.setTime(startMs + 60_000);
    const late = { keyId: `${prefix} key`, requestId: `${prefix} late`, limits, mayWait: false };
    await expect(lost.take(late)).rejects.toThrow('the lease of this process is over');
    expect(await ask('2')).toMatchObject({ verdict: 'granted' });
  });

  test('do what the lists in memory do, for any steps of three processes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const { found, expected } = await compareSteps(slots, nextRun(), steps);
        expect(found).toEqual(expected);
      }),
      propertyRun(100),
    );
  });
});

/** A step of one of three processes, or of the database's time. */
type Step =
  | { readonly kind: 'take'; readonly by: number; readonly key: string; readonly limits: StepLimits }
  | { readonly kind: 'release' | 'leave'; readonly by: number; readonly index: number }
  | { readonly kind: 'ended' | 'held' | 'run out' | 'end lease'; readonly by: number }
  | { readonly kind: 'store limits'; readonly key: string; readonly own: Partial<StepLimits> }
  | {
      readonly kind: 'follow';
      readonly by: number;
      readonly defaults: StepLimits;
      readonly groups: Readonly<Record<string, number>>;
    }
  | { readonly kind: 'free' }
  | { readonly kind: 'pass'; readonly durationMs: number };

interface StepLimits {
  readonly concurrency: number;
  readonly requestsPerMinute: number;
  readonly queueWaitMs: number;
}

const by = fc.nat(2);
const numbers = {
  concurrency: fc.integer({ min: 1, max: 3 }),
  requestsPerMinute: fc.integer({ min: 1, max: 6 }),
};
const someLimits = fc.record({ ...numbers, queueWaitMs: fc.constantFrom(0, 1) });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('take'),
      by,
      key: fc.constantFrom('a', 'b', 'group'),
      limits: someLimits,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom('release', 'leave'), by, index: fc.nat(20) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('ended', 'held', 'run out', 'end lease'), by }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('store limits'),
      key: fc.constantFrom('a', 'b'),
      own: fc.record(numbers, { requiredKeys: [] }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('follow'),
      by,
      defaults: someLimits,
      groups: fc.record({ group: numbers.concurrency }, { requiredKeys: [] }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('free') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass'),
      durationMs: fc.constantFrom(1, 30_000, 59_999, 60_001),
    }),
  },
);

/** Takes some steps on the database and on the lists in memory; returns what each of them answered. */
async function compareSteps(
  slots: TestedSlots,
  { prefix, startMs }: { readonly prefix: string; readonly startMs: number },
  steps: readonly Step[],
) {
  let nowMs = startMs;
  slots.setTime(nowMs);
  await slots.clear();
  const [over, ended] = [new Set<string>(), new Set<string>()];
  const limits = new Map<string, Partial<StepLimits>>();
  const owners = [0, 1, 2].map((number) => `${prefix}-${number}`);
  const memory = createMemorySlots(
    () => nowMs,
    (owner) => !over.has(owner) && !ended.has(owner),
    (owner) => ended.has(owner),
    (keyId) => limits.get(keyId) ?? null,
  );
  const stored = await Promise.all(owners.map(async (owner) => renamed(await slots.storeOf(owner), prefix)));
  const modelled = owners.map((owner) => memory.storeOf(() => owner));
  const asked: { readonly keyId: string; readonly requestId: string; readonly limits: StepLimits }[] = [];
  const [found, expected]: [unknown[], unknown[]] = [[], []];
  const both = async (number: number, act: (store: SlotStore) => Promise<unknown>): Promise<void> => {
    for (const [stores, answers] of [
      [stored, found],
      [modelled, expected],
    ] as const) {
      const store = stores[number];
      if (store === undefined) throw new Error('there are three processes');
      answers.push(await act(store).catch((error: unknown) => (error as Error).name));
    }
  };
  for (const action of steps)
    switch (action.kind) {
      case 'take': {
        const request = { keyId: action.key, requestId: `request-${asked.length}`, limits: action.limits };
        asked.push(request);
        await both(action.by, (store) => store.take({ ...request, mayWait: action.limits.queueWaitMs > 0 }));
        break;
      }
      case 'release':
      case 'leave': {
        const request = asked[action.index % Math.max(1, asked.length)];
        if (request === undefined) break;
        if (action.kind === 'leave') await both(action.by, (store) => store.leave(request));
        else await both(action.by, (store) => store.release(request.keyId, request.requestId));
        break;
      }
      case 'ended':
        await both(action.by, (store) => store.endedWaits());
        break;
      case 'held':
        await both(action.by, async (store) =>
          (await store.held()).map(({ keyId, requestId }) => `${keyId} ${requestId}`).toSorted(),
        );
        break;
      case 'run out':
        over.add(owners[action.by] ?? '');
        await slots.letLeaseRunOut(owners[action.by] ?? '');
        break;
      case 'end lease':
        ended.add(owners[action.by] ?? '');
        await slots.endLease(owners[action.by] ?? '');
        break;
      case 'store limits':
        limits.set(action.key, action.own);
        await slots.storeLimits(`${prefix} ${action.key}`, action.own);
        break;
      case 'follow':
        await both(action.by, (store) =>
          store.followLimits(action.defaults, new Map(Object.entries(action.groups))),
        );
        break;
      case 'free':
        await both(0, (store) => store.freeLost());
        break;
      case 'pass':
        nowMs += action.durationMs;
        slots.setTime(nowMs);
        break;
    }
  return { found, expected };
}
