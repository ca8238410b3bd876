import type { Books } from '../operations/verify-ledger.ts';
import type { Engine, Row } from './engine.ts';
import { readRecord } from './record-pages.ts';

/** How many rows are read at once: requests that want to be settled wait no longer than for one such read. */
const rowsPerRead = 500;

/** How many rows of the ledger are added up at once: a few milliseconds. */
const postingsPerRead = 5_000;

/** What the ledger says of one account up to some row. */
interface Sums {
  readonly ledger: number;
  readonly charged: number;
}

const noSums: Sums = { ledger: 0, charged: 0 };

/** The rows behind the accounts, read for their verification, a few at a time. */
export function createBooks(engine: Engine): Books {
  const rows = async (sql: string, values: readonly (string | number)[] = []): Promise<readonly Row[]> =>
    (await engine.run([{ sql, values }]))[0] ?? [];
  /** Every row of a query that goes on behind a key, in that key's order; `values` stand before the key. */
  const each = async (
    sql: string,
    key: string,
    visit: (row: Row) => void,
    values: readonly number[] = [],
  ): Promise<void> => {
    for (let last = ''; ;) {
      const found = await rows(sql, [...values, last, rowsPerRead]);
      for (const row of found) visit(row);
      if (found.length < rowsPerRead) return;
      last = String(found.at(-1)?.[key]);
    }
  };

  /** Adds the ledger up as far as it goes now. What is added up stays as it is: rows are only ever added behind it. */
  const addUp = async (): Promise<{ sums: ReadonlyMap<string, Sums>; upTo: number; missing: number }> => {
    const [range] = await rows(
      'SELECT coalesce(min(seq), 1) AS first, coalesce(max(seq), 0) AS last FROM ledger',
    );
    const [first, upTo] = [Number(range?.['first']), Number(range?.['last'])];
    const sums = new Map<string, Sums>();
    let missing = 0;
    for (let from = first; from <= upTo; from += postingsPerRead) {
      const to = Math.min(from + postingsPerRead - 1, upTo);
      const found = await rows(
        `SELECT key_id, count(*) AS count, sum(delta) AS ledger,
           -sum(CASE WHEN kind = 'charge' THEN delta ELSE 0 END) AS charged
         FROM ledger WHERE seq BETWEEN ? AND ? GROUP BY key_id`,
        [from, to],
      );
      missing += to - from + 1;
      for (const row of found) {
        const before = sums.get(String(row['key_id'])) ?? noSums;
        missing -= Number(row['count']);
        sums.set(String(row['key_id']), {
          ledger: before.ledger + Number(row['ledger']),
          charged: before.charged + Number(row['charged']),
        });
      }
    }
    return { sums, upTo, missing };
  };

  return {
    async audit(visit) {
      const { sums, upTo, missing } = await addUp();
      // Each account is read together with what was posted to it since, so that all of its figures are of one moment.
      await each(
        `WITH bound (seq) AS (VALUES (?))
         SELECT key_id, balance, held, spent,
           coalesce((SELECT sum(delta) FROM ledger, bound WHERE ledger.key_id = accounts.key_id
             AND ledger.seq > bound.seq), 0) AS ledger,
           coalesce((SELECT -sum(delta) FROM ledger, bound WHERE ledger.key_id = accounts.key_id
             AND ledger.seq > bound.seq AND kind = 'charge'), 0) AS charged,
           coalesce(open.hold, 0) AS open_hold
         FROM accounts LEFT JOIN (SELECT key_id AS open_key, sum(hold) AS hold FROM records
           WHERE outcome IS NULL GROUP BY key_id) AS open ON open.open_key = accounts.key_id
         WHERE key_id > ? ORDER BY key_id LIMIT ?`,
        'key_id',
        (row) => {
          const before = sums.get(String(row['key_id'])) ?? noSums;
          visit({
            keyId: String(row['key_id']),
            balanceNanos: row['balance'] === null ? null : Number(row['balance']),
            heldNanos: Number(row['held']),
            spentNanos: Number(row['spent']),
            ledgerNanos: before.ledger + Number(row['ledger']),
            chargedNanos: before.charged + Number(row['charged']),
            openHoldNanos: Number(row['open_hold']),
          });
        },
        [upTo],
      );
      return missing;
    },
    eachSettled: (visit) =>
      each(
        `SELECT records.*, coalesce(-delta, 0) AS posted FROM records
         LEFT JOIN ledger ON ledger.request_id = records.request_id
         WHERE outcome IS NOT NULL AND records.request_id > ? ORDER BY records.request_id LIMIT ?`,
        'request_id',
        (row) => visit(readRecord(row), Number(row['posted'])),
      ),
  };
}
