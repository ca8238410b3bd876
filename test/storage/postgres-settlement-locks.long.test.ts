import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nextId } from '../../src/composition/next-id.ts';
import { functionOf } from '../../src/storage/postgres/database-function.ts';
import { settleRecord, valuesToSettle } from '../../src/storage/records/settle-record.ts';
import { createStore } from '../../src/storage/store.ts';
import { say } from '../conformance/engine.ts';
import { beginningOf, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`a settlement on PostgreSQL${absent}`, () => {
  test('locks no partition but that of its record, also when it is the first of a connection', async () => {
    const engine = await openPostgres();
    onTestFinished(() => engine.close());
    await engine.run(
      ['0300', '0301', '0302'].map((first, month) =>
        say(`CREATE TABLE records_later_${month} PARTITION OF records
             FOR VALUES FROM ('req_${first}') TO ('req_${first}f')`),
      ),
    );
    const store = createStore(engine, { nextId, now: () => 7, report: () => {} });
    await store.createKey(payingKey, 'hash', 1_000);
    const client = new Client({ connectionString: engine.database.url });
    await client.connect();
    onTestFinished(() => client.end());
    const begun = { ...openedRecord, requestId: `req_${nextId()}` };
    const settlement = { ...settledRecord, requestId: begun.requestId, begun: beginningOf(begun) };
    await store.open(begun);
    await client.query('BEGIN');
    await client.query(functionOf(settleRecord).call(valuesToSettle(settlement, 'posting', 7)));
    const { rows: locked } = await client.query(
      `SELECT relation::regclass::text AS name FROM pg_locks JOIN pg_inherits ON inhrelid = relation
       WHERE pid = pg_backend_pid() AND inhparent = 'records'::regclass`,
    );
    const { rows: kept } = await client.query('SELECT tableoid::regclass::text AS name FROM records');
    await client.query('COMMIT');
    expect(kept).toHaveLength(1);
    expect(locked).toEqual(kept);
  });
});
