import type { Books } from '../operations/verify-ledger.ts';
import type { Engine, Row } from './engine.ts';
import { readRecord } from './record-pages.ts';

/** How many rows are read at once: requests that want to be settled wait no longer than for one such read. */
const rowsPerRead = 500;

/** The rows behind the accounts, read for their verification, a few at a time. */
export function createBooks(engine: Engine): Books {
  const rows = async (sql: string, values: readonly (string | number)[] = []): Promise<readonly Row[]> =>
    (await engine.run([{ sql, values }]))[0] ?? [];
  /** Every row of a query that goes on behind a key, in that key's order. */
  const each = async (sql: string, key: string, visit: (row: Row) => void): Promise<void> => {
    for (let last = ''; ;) {
      const found = await rows(sql, [last, rowsPerRead]);
      for (const row of found) visit(row);
      if (found.length < rowsPerRead) return;
      last = String(found.at(-1)?.[key]);
    }
  };
  return {
    eachAccount: (visit) =>
      each(
        `SELECT key_id, balance, held, spent,
           coalesce((SELECT sum(delta) FROM ledger WHERE ledger.key_id = accounts.key_id), 0) AS ledger,
           coalesce((SELECT -sum(delta) FROM ledger WHERE ledger.key_id = accounts.key_id AND kind = 'charge'), 0)
             AS charged,
           coalesce((SELECT sum(hold) FROM records WHERE records.key_id = accounts.key_id AND outcome IS NULL), 0)
             AS open_hold
         FROM accounts WHERE key_id > ? ORDER BY key_id LIMIT ?`,
        'key_id',
        (row) =>
          visit({
            keyId: String(row['key_id']),
            balanceNanos: row['balance'] === null ? null : Number(row['balance']),
            heldNanos: Number(row['held']),
            spentNanos: Number(row['spent']),
            ledgerNanos: Number(row['ledger']),
            chargedNanos: Number(row['charged']),
            openHoldNanos: Number(row['open_hold']),
          }),
      ),
    eachSettled: (visit) =>
      each(
        `SELECT records.*, coalesce(-delta, 0) AS posted FROM records
         LEFT JOIN ledger ON ledger.request_id = records.request_id
         WHERE outcome IS NOT NULL AND records.request_id > ? ORDER BY records.request_id LIMIT ?`,
        'request_id',
        (row) => visit(readRecord(row), Number(row['posted'])),
      ),
    async countLedgerGaps() {
      const [row] = await rows(
        'SELECT coalesce(max(seq) - min(seq) + 1, 0) - count(*) AS missing FROM ledger',
      );
      return Number(row?.['missing'] ?? 0);
    },
  };
}
