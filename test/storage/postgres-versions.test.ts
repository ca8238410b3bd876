import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createMigrationTable, findPending } from '../../src/storage/migration.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/migrations/all.ts';
import { createStore } from '../../src/storage/store.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`a newer version beside this one on PostgreSQL${absent}`, () => {
  /** A database to which a newer version has added a step, which runs with versions that have so many steps. */
  async function makeNewer(runsWith: number): Promise<string> {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    await onServer('ALTER TABLE records ADD COLUMN later TEXT', url);
    await onServer('ALTER TABLE key_limits ADD COLUMN later TEXT', url);
    await onServer(
      `INSERT INTO migrations VALUES (${migrations.length + 1}, 'later', 'x', ${runsWith})`,
      url,
    );
    return url;
  }

  test('does not keep it from starting and working, if its steps only add', async () => {
    const url = await makeNewer(migrations.length);
    const engine = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => engine.close());
    await engine.ready;
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(openedRecord);
    await store.settle(settledRecord);
    expect(await store.findRecord(openedRecord.requestId, null)).toMatchObject({ outcome: 'completed' });
  });

  test('keeps it from starting, if its steps need a version that knows them', async () => {
    const url = await makeNewer(migrations.length + 1);
    const engine = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => engine.close());
    await expect(engine.ready).rejects.toThrow('the database was made by a newer version of textgate');
  });
});

describe.skipIf(postgresAbsence !== null)(`an earlier version beside this one on PostgreSQL${absent}`, () => {
  test('may meet the steps of this one in a deadlock, after which they are made again', async () => {
    const database = await createDatabase();
    const earlier = new Client({ connectionString: database.url });
    await earlier.connect();
    onTestFinished(async () => {
      await earlier.end();
      await database.drop();
    });
    await earlier.query(createMigrationTable(', runs_with INTEGER NOT NULL DEFAULT 0'));
    for (const { number, name, statements, checksum } of findPending(migrations.slice(0, 6), new Map())) {
      for (const statement of statements) await earlier.query(statement);
      await earlier.query('INSERT INTO migrations VALUES ($1, $2, $3)', [number, name, checksum]);
    }
    // As a list of records; of the two sides, the steps find the deadlock.
    await earlier.query(
      `SET deadlock_timeout = '1min'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM records`,
    );
    const engine = createPostgresEngine({ url: database.url, clock: systemClock });
    onTestFinished(() => engine.close());
    const waiting = `SELECT 1 FROM pg_locks WHERE relation = 'records'::regclass AND NOT granted`;
    await eventually('a step waits', async () => (await onServer(waiting, database.url)).length > 0);
    await earlier.query('SELECT * FROM open_requests; COMMIT');
    await engine.ready;
    expect(await onServer('SELECT max(number) AS number FROM migrations', database.url)).toEqual([
      { number: migrations.length },
    ]);
  });
});

describe.skipIf(postgresAbsence !== null)(`the functions of earlier versions on PostgreSQL${absent}`, () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operators/nodes.md'), 'utf8');
  const [, removal = ''] = /```sql\n(DO \$\$ DECLARE unused [^]*?)```/.exec(page) ?? [];

  test('are removed by the statement of docs/operators/nodes.md, and those of this version and of others stay', async () => {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    const { url } = engine.database;
    const names = async (): Promise<readonly unknown[]> => {
      const found = await onServer(
        `SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`,
        url,
      );
      return found.map(({ proname }) => proname);
    };
    const own = await names();
    const kept = 'textgate_of_an_operator';
    for (const name of ['textgate_settle_record_0123456789ab', 'textgate_take_slot_ba9876543210', kept])
      await onServer(`CREATE FUNCTION ${name}(TEXT) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'`, url);
    // The restart that the page asks for.
    const restarted = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => restarted.close());
    await restarted.ready;
    for (let run = 0; run < 2; run++) {
      await onServer(removal, url);
      expect(new Set(await names())).toEqual(new Set([...own, kept]));
    }
    const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(openedRecord);
    await store.settle(settledRecord);
    expect(await store.findRecord(openedRecord.requestId, null)).toMatchObject({ outcome: 'completed' });
  });
});
