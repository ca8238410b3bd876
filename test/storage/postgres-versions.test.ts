import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { migrations } from '../../src/storage/postgres/migrations/all.ts';
import { createStore } from '../../src/storage/store.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { onServer, openPostgres, postgresAbsence } from '../support/test-postgres.ts';

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
