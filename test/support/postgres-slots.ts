import { setImmediate } from 'node:timers/promises';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import type { Limits } from '../../src/domain/limits/limits.ts';
import type { SlotStore } from '../../src/domain/ports/slot-store.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { DatabasePool } from './test-postgres.ts';

/** Slots in a database whose time is the test's. */
export interface TestedSlots {
  /** What a process sees of them under its lease, which it has from the start. */
  storeOf(owner: string): Promise<SlotStore>;
  /** Sets the time of the database, in milliseconds, for all later steps. */
  setTime(nowMs: number): void;
  /** Has the lease of an owner run out: it is over, and not ended. */
  letLeaseRunOut(owner: string): Promise<void>;
  /** Ends the lease of an owner. */
  endLease(owner: string): Promise<void>;
  /** Stores a key with limits of its own. */
  storeLimits(keyId: string, own: Partial<Limits>): Promise<void>;
  /** Removes all slots, starts and lines. */
  clear(): Promise<void>;
  /** Resolves when no step is under way. */
  settled(): Promise<void>;
  readonly engine: PostgresEngine;
}

/** Databases whose clock is a table. */
const slotDatabases = new DatabasePool(async (engine) => {
  const run = (sql: string) => engine.run([{ sql, values: [] }]);
  await run('CREATE TABLE test_clock (now BIGINT NOT NULL)');
  await run('INSERT INTO test_clock VALUES (0)');
  await run(
    'CREATE OR REPLACE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$ SELECT now FROM test_clock $$',
  );
});

/** Opens a database whose clock is a table. */
export async function openPostgresSlots(): Promise<TestedSlots> {
  const engine = await slotDatabases.open();
  const run = (sql: string, ...values: readonly (string | number | null)[]) => engine.run([{ sql, values }]);
  let clockIsSet: Promise<unknown> = Promise.resolve();
  const underWay = new Set<Promise<unknown>>();
  const timed = {
    callFunction(...call: Parameters<PostgresEngine['callFunction']>) {
      const called = clockIsSet.then(() => engine.callFunction(...call));
      const step: Promise<unknown> = called.catch(() => {}).then(() => underWay.delete(step));
      underWay.add(step);
      return called;
    },
    lookUp: (...call: Parameters<PostgresEngine['lookUp']>) => engine.lookUp(...call),
  };
  return {
    engine,
    async storeOf(owner) {
      await run(
        'INSERT INTO owners (id, since, renewed_at) VALUES (?, 0, ?)',
        owner,
        Number.MAX_SAFE_INTEGER,
      );
      return createSlotStore(timed, () => owner);
    },
    setTime(nowMs) {
      clockIsSet = clockIsSet.then(() => run('UPDATE test_clock SET now = ?', Math.round(nowMs)));
    },
    async letLeaseRunOut(owner) {
      await run('UPDATE owners SET renewed_at = 0 WHERE id = ?', owner);
    },
    async endLease(owner) {
      await run('DELETE FROM owners WHERE id = ?', owner);
    },
    async storeLimits(keyId, { concurrency = null, requestsPerMinute = null }) {
      await run(
        `INSERT INTO api_keys (id, hash, name, created_at, concurrency, requests_per_minute) VALUES (?, ?, '', 0, ?, ?)
         ON CONFLICT (id) DO UPDATE SET concurrency = excluded.concurrency,
           requests_per_minute = excluded.requests_per_minute`,
        keyId,
        keyId,
        concurrency,
        requestsPerMinute,
      );
    },
    async clear() {
      await run('TRUNCATE key_limits, slots, starts, waiting_requests, ended_waits');
    },
    async settled() {
      // What ends a step may begin the next one.
      do {
        await Promise.all(underWay);
        await setImmediate();
      } while (underWay.size > 0);
    },
  };
}
