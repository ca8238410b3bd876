import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { eventually } from '../support/eventually.ts';
import { openedRecord, payingKey } from '../support/stored-rows.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(
  `a PostgreSQL database that refuses writes for a while${absent}`,
  () => {
    test('is reported, and written to again once it accepts them, although no connection was lost then', async () => {
      const database = await createDatabase();
      onTestFinished(() => database.drop());
      const engine = createPostgresEngine({ url: database.url, clock: systemClock });
      onTestFinished(() => engine.close());
      await engine.ready;
      const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
      await store.createKey(payingKey, 'hash', 1_000);
      const isWritten = (): Promise<boolean> =>
        store.open(openedRecord).then(
          ({ granted }) => granted,
          () => false,
        );

      await onServer(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
      await onServer(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database.name}'`,
      );
      await eventually('it is reported', () => /refuses writes/.test(engine.impaired ?? ''));
      expect(await isWritten()).toBe(false);
      await onServer(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`);
      await eventually('it is written to', isWritten);
      await eventually('nothing is wrong with any connection', () => engine.impaired === null);
    });

    test('is written to again after sessions that were switched to refusing', async () => {
      const database = await createDatabase();
      onTestFinished(() => database.drop());
      const engine = createPostgresEngine({ url: database.url, clock: systemClock });
      onTestFinished(() => engine.close());
      await engine.ready;
      const refuse = engine.run([
        {
          sql: `CREATE FUNCTION refuse_once() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN RAISE EXCEPTION 'cannot execute UPDATE in a read-only transaction' USING ERRCODE = '25006'; END $$`,
          values: [],
        },
        {
          sql: 'CREATE TRIGGER refuse_once BEFORE INSERT ON open_rows EXECUTE FUNCTION refuse_once()',
          values: [],
        },
      ]);
      await refuse;
      const store = createStore(engine, { nextId: () => 'id', now: () => 7, report: () => {} });
      await store.createKey(payingKey, 'hash', 1_000);
      const sessions = async (): Promise<unknown> =>
        onServer(
          `SELECT array_agg(pid ORDER BY pid)::text AS pids FROM pg_stat_activity
         WHERE datname = '${database.name}' AND application_name = 'textgate'`,
        );
      const before = await sessions();
      await expect(store.open(openedRecord)).rejects.toThrow('read-only');
      await eventually('its session is another one', async () => {
        const now = await sessions();
        return JSON.stringify(now) !== JSON.stringify(before);
      });
    });
  },
);
