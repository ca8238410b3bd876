import type { Books } from '../operations/verify-ledger.ts';
import type { Engine, Row } from './engine.ts';
import { readRecord } from './record-pages.ts';

/** How many records are read at once. */
const recordsPerRead = 1_000;

/** The rows behind the accounts, read for their verification. */
export function createBooks(engine: Engine): Books {
  const rows = async (sql: string, values: readonly (string | number)[] = []): Promise<readonly Row[]> =>
    (await engine.run([{ sql, values }]))[0] ?? [];
  const count = async (sql: string): Promise<number> => Number((await rows(sql))[0]?.['count'] ?? 0);
  return {
    async auditAccounts() {
      const found = await rows(
        `SELECT key_id, balance, held, spent,
           coalesce((SELECT sum(delta) FROM ledger WHERE ledger.key_id = accounts.key_id), 0) AS ledger,
           coalesce((SELECT -sum(delta) FROM ledger WHERE ledger.key_id = accounts.key_id AND kind = 'charge'), 0)
             AS charged,
           coalesce((SELECT sum(hold) FROM records WHERE records.key_id = accounts.key_id AND outcome IS NULL), 0)
             AS open_hold
         FROM accounts`,
      );
      return found.map((row) => ({
        keyId: String(row['key_id']),
        balanceNanos: row['balance'] === null ? null : Number(row['balance']),
        heldNanos: Number(row['held']),
        spentNanos: Number(row['spent']),
        ledgerNanos: Number(row['ledger']),
        chargedNanos: Number(row['charged']),
        openHoldNanos: Number(row['open_hold']),
      }));
    },
    countLedgerGaps: () =>
      count('SELECT coalesce(max(seq) - min(seq) + 1, 0) - count(*) AS count FROM ledger'),
    countMismatchedCharges: () =>
      count(
        `SELECT count(*) AS count FROM records LEFT JOIN ledger ON ledger.request_id = records.request_id
         WHERE outcome IS NOT NULL AND charge <> coalesce(-delta, 0)`,
      ),
    async eachCharged(visit) {
      let last = '';
      for (;;) {
        const found = await rows(
          'SELECT * FROM records WHERE outcome IS NOT NULL AND request_id > ? ORDER BY request_id LIMIT ?',
          [last, recordsPerRead],
        );
        for (const row of found) visit(readRecord(row));
        if (found.length < recordsPerRead) return;
        last = String(found.at(-1)?.['request_id']);
      }
    },
  };
}
