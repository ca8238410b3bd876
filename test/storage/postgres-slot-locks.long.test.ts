import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { eventually } from '../support/eventually.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
const limits = { concurrency: 1, requestsPerMinute: 100, queueWaitMs: 1_000 };

describe.skipIf(postgresAbsence !== null)(`locks of slots in PostgreSQL${absent}`, () => {
  test('do not keep a search for what is lost waiting, whose end of a wait is given up meanwhile, and cause no deadlock', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const { url, name } = database;
    const engine = createPostgresEngine({ url, clock: systemClock });
    onTestFinished(() => engine.close());
    await engine.ready;
    const sql = (text: string) => onServer(text, url);
    await sql(
      `INSERT INTO owners (id, since, renewed_at) SELECT id, now_ms(), now_ms() FROM unnest(ARRAY['lost', 'living']) AS id`,
    );
    const [lost, living] = ['lost', 'living'].map((owner) => createSlotStore(engine, () => owner));
    if (lost === undefined || living === undefined) throw new Error('there are two');
    await lost.take({ keyId: 'key', requestId: '1', limits, mayWait: false });
    await lost.take({ keyId: 'key', requestId: '2', limits, mayWait: true });
    // The wait has ended, and its process is not there to take it.
    await living.release('key', '1');
    await sql(`DELETE FROM owners WHERE id = 'lost'`);

    const holder = new Client({ connectionString: url });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query(`BEGIN; SELECT 1 FROM key_limits WHERE key_id = 'key' FOR UPDATE`);
    const waiting = (count: number) =>
      eventually(`${count} wait for the key`, async () => {
        const [row] = await sql(
          `SELECT count(*)::int AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
        );
        return row?.['count'] === count;
      });
    const leaving = lost.leave({ keyId: 'key', requestId: '2', limits });
    await waiting(1);
    expect(await living.freeLost()).toBe(0);
    await holder.query('COMMIT');
    expect(await leaving).toMatchObject({ verdict: 'granted' });
    expect(await living.freeLost()).toBe(1);
    // Sessions report what they counted at their end at the latest.
    await engine.close();
    const ofDatabase = `datname = '${name}' AND application_name = 'textgate'`;
    await eventually('its sessions have ended', async () => {
      const left = await onServer(`SELECT 1 FROM pg_stat_activity WHERE ${ofDatabase}`);
      return left.length === 0;
    });
    const [row] = await onServer(`SELECT deadlocks FROM pg_stat_database WHERE datname = '${name}'`);
    expect(row?.['deadlocks']).toBe('0');
  });
});
