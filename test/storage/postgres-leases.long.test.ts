import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keepLease } from '../../src/background/keep-lease.ts';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import { systemClock } from '../../src/composition/clock.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { openTimedPostgres } from '../support/timed-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { requestIdFor, requestName } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

const request = (name: string) => ({ ...openedRecord, requestId: requestIdFor(name) });

/** A process as it starts: it opens the database, takes its lease, closes what is lost, and only then begins requests. */
async function startProcess(url: string) {
  const engine = createPostgresEngine({ url, clock: systemClock });
  const clock = createFakeClock();
  const faults: string[] = [];
  const onFault = (message: string): void => void faults.push(message);
  const store = createStore(engine, { nextId: () => randomUUID(), now: () => 7, report: onFault });
  let closed = 0;
  const onEnded = async (): Promise<void> => void (closed += await store.closeLostRecords());
  const lease = keepLease(store, { clock, ready: engine.ready, onEnded, onFault });
  const records = retrySettlements(store, {
    clock,
    onFault,
    spool: null,
    ready: lease.taken,
    isBroken: () => false,
    isLost: () => false,
  });
  const closedAtStart = await records.recover();
  return {
    engine,
    store,
    records,
    faults,
    closedAtStart,
    closedLater: () => closed,
    /** Does what is due within a time. */
    async look(durationMs: number) {
      // In the steps in which it looks: a longer one is a pause in which it stood still.
      for (let passedMs = 0; passedMs < durationMs; passedMs += 500) {
        clock.advance(500);
        await eventually('the looks are done', () => clock.scheduled === 2);
      }
    },
    async stop() {
      await lease.stop();
      await engine.close();
    },
    /** Ends as by SIGKILL: nothing is said to the database. */
    kill: () => engine.close(),
  };
}

/** A database whose time the test moves, with a key and a process that has begun a request. */
async function setUp() {
  const { engine, move } = await openTimedPostgres();
  onTestFinished(() => engine.close());
  const living = await startProcess(engine.database.url);
  onTestFinished(() => living.stop());
  await living.store.createKey(payingKey, 'hash', 1_000);
  await living.records.open(request('living'));
  return { engine, url: engine.database.url, move, living };
}

async function openRequests(engine: Engine): Promise<readonly unknown[]> {
  const [rows = []] = await engine.read([
    { sql: 'SELECT request_id FROM open_requests ORDER BY request_id', values: [] },
  ]);
  return rows.map((row) => requestName(String(row['request_id'])));
}

/** A connection of the test itself. */
async function connectTo(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  // Dropping the database ends its connections.
  client.on('error', () => {});
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

/** Whether a connection to the database waits for a lock. */
async function someoneWaits(client: Client): Promise<boolean> {
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await client.query(waiting)).rowCount === 1;
}

describe.skipIf(postgresAbsence !== null)(`processes that share PostgreSQL${absent}`, () => {
  test('start beside a living one without closing any of its requests', async () => {
    const { engine, url, living } = await setUp();
    const started = await startProcess(url);
    onTestFinished(() => started.stop());
    expect(started.closedAtStart).toBe(0);
    expect(await openRequests(engine)).toEqual(['living']);
    await living.records.settle({ ...settledRecord, requestId: requestIdFor('living') });
    expect([...living.faults, ...started.faults]).toEqual([]);
  });

  test('close what a killed one left once its lease is over, and what a stopped one left at the next start', async () => {
    const { engine, url, move, living } = await setUp();
    const [killed, stopped] = [await startProcess(url), await startProcess(url)];
    await killed.records.open(request('killed'));
    await stopped.records.open(request('stopped'));
    await killed.kill();
    await stopped.stop();
    const restarted = await startProcess(url);
    expect(restarted.closedAtStart).toBe(1);
    expect(await openRequests(engine)).toEqual(['killed', 'living']);
    for (let passedMs = 0; passedMs < 15_000; passedMs += 5_000) {
      expect(living.closedLater()).toBe(0);
      await move(5_000);
      await restarted.look(5_000);
      await living.look(5_000);
    }
    await living.look(500);
    await eventually('it is closed', () => living.closedLater() + restarted.closedLater() === 1);
    expect(await openRequests(engine)).toEqual(['living']);
    expect(living.store.owner()).not.toBe(restarted.store.owner());
    await restarted.stop();
  });

  test('end no lease whose owner is just renewing it', async () => {
    const { engine, url, move, living } = await setUp();
    const renewing = await connectTo(url);
    const judge: Store = createStore(engine, { nextId: () => randomUUID(), now: () => 7, report() {} });
    await judge.renewLease();
    for (let renewals = 0; renewals < 3; renewals++) {
      await move(5_000);
      await judge.renewLease();
    }
    await renewing.query('BEGIN');
    await renewing.query('UPDATE owners SET renewed_at = now_ms() WHERE id = $1', [living.store.owner()]);
    const ending = judge.endOverLeases();
    await eventually('the ending waits for the renewal', () => someoneWaits(renewing));
    await renewing.query('COMMIT');
    expect(await ending).toEqual([]);
    expect(await judge.closeLostRecords()).toBe(0);
  });

  test('get no slot under a lease that was ended while they waited for the lock of the key', async () => {
    const { url, living } = await setUp();
    const slots = createSlotStore(living.engine, () => living.store.owner());
    const limits = { concurrency: 2, requestsPerMinute: 10, queueWaitMs: 0 };
    const ask = (name: string) =>
      slots.take({ keyId: 'another', requestId: requestIdFor(name), limits, mayWait: false });
    expect(await ask('before')).toMatchObject({ inFlight: 1 });
    const locking = await connectTo(url);
    await locking.query('BEGIN');
    await locking.query('SELECT 1 FROM key_limits FOR UPDATE');
    const refusal = ask('late').catch((error: unknown) => String(error));
    await eventually('it waits for the lock', () => someoneWaits(locking));
    await locking.query('DELETE FROM owners');
    await locking.query('COMMIT');
    expect(await refusal).toContain('the lease of this process is over');
    expect(await slots.freeLost()).toBe(1);
  });
});
