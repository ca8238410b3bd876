import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { composeLimiter } from '../../src/composition/limiter-services.ts';
import type { ActiveConfig } from '../../src/composition/active-config.ts';
import { openStorage } from '../../src/composition/storage/storage-services.ts';
import { noSpool, storage } from '../../src/config/schema/storage-schema.ts';
import type { SlotStore } from '../../src/domain/ports/slot-store.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/schema.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { createStore } from '../../src/storage/store.ts';
import { createLog } from '../../src/telemetry/log/logger.ts';
import { postgresPrograms, startPostgresServer } from '../support/postgres-server.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const limits = { concurrency: 4, requestsPerMinute: 5, queueWaitMs: 60_000 };
const nowMs = Date.now();

/** A node with a lease, and its slots. */
async function openNode(engine: PostgresEngine, name: string) {
  const store = createStore(engine, { nextId: () => name, now: Date.now, report: () => {} });
  await store.renewLease();
  return { store, slots: createSlotStore(engine, () => name) };
}

const take = (slots: SlotStore, requestId: string, keyId = payingKey.id, mayWait = false) =>
  slots.take({ keyId, requestId, limits, mayWait });

test.skipIf(postgresPrograms === null)(
  'a crash of the server forgets no limit: what runs and what was started is counted by its records, and else by its node',
  async () => {
    const server = await startPostgresServer();
    onTestFinished(() => server.remove());
    const open = async () => {
      const engine = createPostgresEngine({ url: server.url(), clock: systemClock });
      await engine.ready;
      return engine;
    };
    const before = await open();
    const { store, slots } = await openNode(before, 'living');
    const other = await openNode(before, 'dead');
    await store.createKey(payingKey, 'hash', 1_000);
    const [ended, running, unrecorded, lost] = ['ended', 'running', 'unrecorded', 'lost'].map((name) =>
      requestIdFor(name, nowMs),
    ) as [string, string, string, string];
    for (const requestId of [ended, running, lost]) {
      const node = requestId === lost ? other : { store, slots };
      await take(node.slots, requestId);
      await node.store.open({ ...openedRecord, requestId });
    }
    await take(slots, unrecorded);
    await store.settle({ ...settledRecord, requestId: ended });
    await slots.release(payingKey.id, ended);
    await other.store.endLease();
    expect(await take(slots, requestIdFor('last', nowMs))).toMatchObject({ verdict: 'granted', inFlight: 4 });
    await slots.release(payingKey.id, requestIdFor('last', nowMs));
    // As after a long outage: no lease was renewed, and none is ended.
    await server.sql('UPDATE owners SET renewed_at = 1');
    await before.close();
    await server.kill();
    await server.start();

    const engine = await open();
    onTestFinished(() => engine.close());
    const { slots: after } = await openNode(engine, 'taking');
    expect(await server.sql('SELECT * FROM key_limits')).toEqual([]);
    // Three of the starts have records. The request of the dead node runs no more.
    expect(await take(after, requestIdFor('new', nowMs))).toMatchObject({
      verdict: 'granted',
      inFlight: 2,
      remainingStarts: 1,
    });
    expect(await server.sql('SELECT request_id, owner FROM slots ORDER BY owner')).toEqual([
      { request_id: running, owner: 'living' },
      { request_id: requestIdFor('new', nowMs), owner: 'taking' },
    ]);
    expect(await after.restore(payingKey.id, [running, unrecorded])).toBe(1);
    expect(await after.restore(payingKey.id, [running, unrecorded])).toBe(0);
    await after.release(payingKey.id, running);
    expect(await take(after, requestIdFor('newer', nowMs))).toMatchObject({
      verdict: 'granted',
      inFlight: 3,
    });
    expect(await take(after, requestIdFor('newest', nowMs))).toMatchObject({ verdict: 'rate' });
  },
);

test.skipIf(postgresPrograms === null)(
  'what runs has its slot again as soon as its node has a crashed server again, although its lease was over',
  async () => {
    const server = await startPostgresServer();
    onTestFinished(() => server.remove());
    const log = createLog('silent', systemClock);
    const metrics = { holdsExpired() {}, keyLookUpShed() {} };
    const settings = storage.parse({ url: server.url(), spool: noSpool });
    const opened = openStorage(settings, systemClock, log, metrics);
    onTestFinished(() => opened.close());
    await opened.recovered;
    // It searches by itself after 15 seconds.
    const inForce = () => ({ defaultLimits: limits, groups: new Map() }) as unknown as ActiveConfig;
    const limiter = composeLimiter(opened, inForce, systemClock, log);
    onTestFinished(async () => limiter.close());
    const running = requestIdFor('running', nowMs);
    await limiter.acquire(payingKey.id, running, limits, new AbortController().signal);
    await server.sql('UPDATE owners SET renewed_at = 1');
    await server.kill();
    await server.start();
    await expect
      .poll(() => server.sql('SELECT request_id FROM slots'), { timeout: 8_000 })
      .toEqual([{ request_id: running }]);
  },
);

test.skipIf(postgresAbsence !== null)(
  `the slots of running nodes leave the write-ahead log with the step of a newer one, and stay as they are${absent}`,
  async () => {
    const first = await openPostgres({ steps: migrations.slice(0, 1) });
    onTestFinished(() => first.close());
    const { slots } = await openNode(first, 'older');
    await take(slots, '1', 'key');
    await take(slots, '2', 'key');
    const newer = createPostgresEngine({ url: first.database.url, clock: systemClock });
    onTestFinished(() => newer.close());
    await newer.ready;
    const [tables] = await newer.read([
      {
        sql: `SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' ORDER BY relname`,
        values: [],
      },
    ]);
    expect(tables?.map(({ relname }) => relname)).toEqual([
      'ended_waits',
      'key_limits',
      'slots',
      'starts',
      'waiting_requests',
    ]);
    const { slots: newerSlots } = await openNode(newer, 'newer');
    expect(await take(newerSlots, '3', 'key')).toMatchObject({ verdict: 'granted', inFlight: 3 });
    expect(await take(slots, '4', 'key')).toMatchObject({ verdict: 'granted', inFlight: 4 });
    expect(await take(newerSlots, '5', 'key', true)).toBe('waiting');
    await slots.release('key', '1');
    expect(await newerSlots.endedWaits()).toMatchObject([
      { requestId: '5', decision: { verdict: 'granted' } },
    ]);
  },
);
