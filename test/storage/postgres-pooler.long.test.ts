import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { StorageError } from '../../src/domain/storage-refusal.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { pgbouncerAbsence, startPgBouncer } from '../support/pgbouncer.ts';
import type { PgBouncer } from '../support/pgbouncer.ts';
import { rejection } from '../support/postgres-bench.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { createDatabase, onServer } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const absent = pgbouncerAbsence === null ? '' : ` (${pgbouncerAbsence})`;

const readSettings = `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
  current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('jit') AS jit,
  current_setting('default_transaction_isolation') AS isolation,
  current_setting('default_transaction_read_only') AS read_only`;

/** A database of the test's own, and a PgBouncer in front of it. */
async function setUp(
  settings: Readonly<Record<string, string | number>>,
): Promise<{ readonly database: TestDatabase; readonly pooler: PgBouncer }> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return { database, pooler: await startPgBouncer(database.url, settings) };
}

function open(url: string): PostgresEngine {
  const engine = createPostgresEngine({ url, clock: systemClock });
  onTestFinished(() => engine.close());
  return engine;
}

/** The settings that sessions of the server have and the gateway makes, as another client of the pooler finds them. */
const leftSettings = (url: string): Promise<readonly unknown[]> => onServer(readSettings, url);

describe.skipIf(pgbouncerAbsence !== null)(`behind PgBouncer${absent}`, () => {
  test('sessions have the settings of direct ones, with its defaults and where it drops those of the start', async () => {
    const { database, pooler } = await setUp({ pool_mode: 'session' });
    const direct = open(database.url);
    await direct.ready;
    const [[expected] = []] = await direct.read([{ sql: readSettings, values: [] }]);
    expect(expected).toMatchObject({ statement: '30s', lock: '4s', idle: '10s', read_only: 'on' });
    const before = await leftSettings(pooler.url);
    const engine = open(pooler.url);
    await engine.ready;
    expect(await engine.read([{ sql: readSettings, values: [] }])).toEqual([[expected]]);
    await engine.close();
    // Those who get its sessions next have none of them.
    expect(await leftSettings(pooler.url)).toEqual(before);
  });

  test.each([
    ['transaction', {}],
    ['transaction', { server_round_robin: 1 }],
    ['transaction', { server_round_robin: 1, min_pool_size: 2, default_pool_size: 2 }],
    ['transaction', { ignore_startup_parameters: 'statement_timeout,lock_timeout,options' }],
    ['statement', {}],
  ])('a start in %s mode with %o is refused with what to do, and leaves no setting', async (mode, more) => {
    const { database, pooler } = await setUp({ pool_mode: mode, ...more });
    const before = await leftSettings(pooler.url);
    const { message, isPermanent } = await rejection(open(pooler.url).ready);
    expect(message).toMatch(
      /can't be reached: a pooler gives each transaction another session: set pool_mode = session .*, or name the server itself in storage\.url$/,
    );
    expect(isPermanent).toBe(false);
    for (let each = 0; each < 6; each++) expect(await leftSettings(pooler.url)).toEqual(before);
    expect(
      await onServer(`SELECT count(*) AS tables FROM pg_class WHERE relname = 'record_rows'`, database.url),
    ).toEqual([{ tables: '0' }]);
  });

  test('a pool with too few sessions for a gateway is named', async () => {
    const { pooler } = await setUp({ pool_mode: 'session', default_pool_size: 8 });
    const { message } = await rejection(open(pooler.url).ready);
    expect(message).toMatch(/give its pool 17( sessions)? for each gateway$/);
  });

  test('a pooler that is switched to transactions is found by calls, of which none is lost, and used after the switch back', async () => {
    const { database, pooler } = await setUp({ pool_mode: 'session' });
    const engine = open(pooler.url);
    await engine.ready;
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000_000_000);
    expect(await store.open(openedRecord)).toMatchObject({ granted: true });
    await pooler.reload({ pool_mode: 'transaction' });
    let opened = 0;
    /** A call on each of the connections, more or less. */
    const callAll = async (): Promise<void> => {
      const names = Array.from({ length: 32 }, () => `of_${opened++}`);
      const calls = names.map((name) =>
        store.open({ ...openedRecord, requestId: requestIdFor(name), keyId: `key_${name}` }),
      );
      const made = await Promise.allSettled([...calls, store.checkWrites()]);
      // What is rejected for good is not offered again: a settlement would not be charged.
      const lost = made.filter((call) => call.status === 'rejected' && call.reason.isPermanent !== false);
      expect(lost).toEqual([]);
    };
    await eventually('it is told what is wrong', async () => {
      await callAll();
      return /a pooler gives each transaction another session/.test(engine.impaired ?? '');
    });
    await pooler.reload({ pool_mode: 'session' });
    await eventually('nothing is wrong with any connection', () => engine.impaired === null);
    // A session may have a statement left that another one prepared there: the call is offered again.
    const failed: StorageError[] = [];
    await eventually('it is settled', () =>
      store.settle(settledRecord).then(
        () => true,
        (error: StorageError) => {
          failed.push(error);
          return false;
        },
      ),
    );
    expect(failed.filter(({ isPermanent }) => isPermanent)).toEqual([]);
    expect(
      await onServer(
        `SELECT charge::int AS nanos FROM records WHERE request_id = '${openedRecord.requestId}'`,
        database.url,
      ),
    ).toEqual([{ nanos: settledRecord.chargeNanos }]);
  });
});
