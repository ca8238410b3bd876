import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { eventually } from '../support/eventually.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { compared, openStore, startMs } from '../support/usage-scene.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import { Client } from 'pg';

const dayMs = 86_400_000;
const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`usage on PostgreSQL${absent}`, () => {
  test('is rolled up only once all transactions have ended that may not have seen it begin', async () => {
    const { engine, use } = await openStore(await openPostgres());
    const { url } = (engine as Awaited<ReturnType<typeof openPostgres>>).database;
    await use({});
    const other = new Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end().catch(() => {}));
    other.on('error', () => {});
    // As a settlement that hangs behind its last statement.
    await other.query(`BEGIN; INSERT INTO record_rows (created_at, tail, account, kind, queued_ms, settled_ms, charge)
      SELECT ${startMs + 5}, unhex('00000000000000000000'), account, kind, 0, 1, 3 FROM record_rows`);
    const rollups = createUsageRollups(engine);
    await rollups.rollUp(startMs + 3 * dayMs, setImmediate);
    const rolled = { sql: `SELECT count(*) AS count FROM usage_periods WHERE state = 'rolled'`, values: [] };
    expect(await engine.read([rolled])).toEqual([[{ count: 0 }]]);
    await other.query('COMMIT');
    // Transactions of other databases of the server count, too: those of other tests may take a while.
    await eventually('the days are rolled up', async () => {
      await rollups.rollUp(startMs + 3 * dayMs, setImmediate);
      const [[row] = []] = await engine.read([rolled]);
      return row?.['count'] === 2;
    });
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    expect(expected).toMatchObject([{ requests: 2 }]);
  });

  test('is rolled up where a dump was restored whose server had more transactions', async () => {
    const { engine, use } = await openStore(await openPostgres());
    await use({});
    const begun = `INSERT INTO usage_periods (period, start, state, barrier, next_hour)
      VALUES ('day', ${startMs}, 'rolling', ${Number.MAX_SAFE_INTEGER}, ${startMs})`;
    await engine.run([{ sql: begun, values: [] }]);
    await eventually('the day is rolled up', async () => {
      await createUsageRollups(engine).rollUp(startMs + 2 * dayMs, setImmediate);
      const [[row] = []] = await engine.read([
        { sql: `SELECT state FROM usage_periods WHERE start = ${startMs}`, values: [] },
      ]);
      return row?.['state'] === 'rolled';
    });
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
  });

  test('is exact while many keys settle requests of past days and two processes roll them up', async () => {
    const { engine, addKey, use } = await openStore(await openPostgres());
    const keyIds = Array.from({ length: 12 }, (_, at) => `key_${at}`);
    for (const keyId of keyIds) await addKey(keyId);
    const over = new AbortController();
    const rollUp = async (): Promise<void> => {
      while (!over.signal.aborted)
        await createUsageRollups(engine, 3).rollUp(startMs + 40 * dayMs, setImmediate);
    };
    const settle = async (keyId: string, at: number): Promise<void> => {
      for (let request = 0; request < 25; request++)
        await use(
          { keyId, requestId: requestIdFor(`${at} ${request}`, startMs + ((at + request * 7) % 30) * dayMs) },
          { chargeNanos: 1 },
        );
    };
    const rolling = [rollUp(), rollUp()];
    await Promise.all(keyIds.map(settle));
    over.abort();
    await Promise.all(rolling);
    const before = await compared(engine);
    expect(before.found).toEqual(before.expected);
    await createUsageRollups(engine).rollUp(startMs + 40 * dayMs, setImmediate);
    const after = await compared(engine);
    expect(after.found).toEqual(after.expected);
    expect(
      (await verifyLedger(createLedgerAudit(engine))).faults.filter((fault) => fault.includes('usage')),
    ).toEqual([]);
  });
});
