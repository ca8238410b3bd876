import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nextId } from '../../src/composition/next-id.ts';
import { functionOf } from '../../src/storage/postgres/database-function.ts';
import { createKindNumbers } from '../../src/storage/records/kind-numbers.ts';
import { settledKind } from '../../src/storage/records/record-kinds.ts';
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
      [0, 1, 2].map((first) =>
        say(`CREATE TABLE records_later_${first} PARTITION OF record_rows
             FOR VALUES FROM (${Date.UTC(2090, first)}) TO (${Date.UTC(2090, first + 1)})`),
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
    const kind = await createKindNumbers(engine).ask(settledKind(settlement, ''));
    await client.query('BEGIN');
    await client.query(
      functionOf(settleRecord).call(
        valuesToSettle({ ...settlement, kind, settledAtMs: 7, described: null, isUnwritten: false }),
      ),
    );
    const { rows: locked } = await client.query(
      `SELECT relation::regclass::text AS name FROM pg_locks JOIN pg_inherits ON inhrelid = relation
       WHERE pid = pg_backend_pid() AND inhparent = 'record_rows'::regclass`,
    );
    const { rows: kept } = await client.query('SELECT tableoid::regclass::text AS name FROM record_rows');
    await client.query('COMMIT');
    expect(kept).toHaveLength(1);
    expect(locked).toEqual(kept);
  });
});
