import type { ChainState } from '../../domain/statements/chain.ts';
import type { Row, Statement } from '../engine.ts';

/** How many rows of the ledger are hashed in one step, and lie between two seals: some milliseconds. */
export const rowsPerStep = 1_000;

/** The place from which a search by time begins, above the number of any row: a power of two. */
const searchedNumbers = 2 ** 40;

/** An account's last row, and what is folded of it. */
export function selectEnd(keyId: string): Statement {
  return {
    sql: `SELECT coalesce(ledger_folds.number, 0) AS folded, coalesce(credits, 0) - coalesce(charges, 0) AS folded_balance,
            postings
          FROM accounts LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id WHERE accounts.key_id = ?`,
    values: [keyId],
  };
}

/**
 * The last row from before a time. The times of rows may be a little out of order, as nodes have clocks of their own, and no
 * index has them. So the number is searched bit by bit: each look asks for one row that never changes, and rows that come
 * later change no answer of an earlier one. Two periods that meet have no row in common, and none between them.
 */
export function selectLastBefore(keyId: string, atMs: number): Statement {
  return {
    sql: `WITH RECURSIVE search (step, place) AS (
            SELECT CAST(? AS BIGINT), CAST(0 AS BIGINT)
            UNION ALL
            SELECT step / 2, CASE
              WHEN place + step <= coalesce((SELECT number FROM ledger_folds WHERE ledger_folds.key_id = ?), 0) OR EXISTS (
                SELECT 1 FROM ledger WHERE ledger.key_id = ? AND ledger.number = place + step AND created_at < ?)
              THEN place + step ELSE place END
            FROM search WHERE step > 0)
          SELECT place FROM search WHERE step = 0`,
    values: [searchedNumbers, keyId, keyId, atMs],
  };
}

/** Rows of an account behind a number. */
export function selectRows(keyId: string, after: number, upTo: number): Statement {
  return {
    sql: `SELECT number, created_at, kind, delta, coalesce(request_id, reference) AS reference FROM ledger
          WHERE key_id = ? AND number > ? AND number <= ? ORDER BY number`,
    values: [keyId, after, Math.min(upTo, after + rowsPerStep)],
  };
}

/** The last seal up to a row. */
export function selectSealUpTo(keyId: string, number: number): Statement {
  return {
    sql: `SELECT number, hash, balance FROM ledger_seals WHERE key_id = ? AND number <= ? ORDER BY number DESC LIMIT 1`,
    values: [keyId, number],
  };
}

/** The next points of an account's chain that were written down: seals, and what roots have of it. */
export function selectSealed(keyId: string, after: number, upTo: number): readonly Statement[] {
  return [
    {
      sql: `SELECT number, hash FROM ledger_seals WHERE key_id = ? AND number > ? AND number <= ?`,
      values: [keyId, after, upTo],
    },
    {
      sql: `SELECT number, hash FROM ledger_heads WHERE key_id = ? AND number > ? AND number <= ?`,
      values: [keyId, after, upTo],
    },
  ];
}

/** Seals a row; one that is sealed stays as it is. */
export function insertSeal(keyId: string, { number, hash, balanceNanos }: ChainState): Statement {
  return {
    sql: `INSERT INTO ledger_seals (key_id, number, hash, balance)
          VALUES (?, CAST(? AS BIGINT), ?, CAST(? AS BIGINT)) ON CONFLICT (key_id, number) DO NOTHING`,
    values: [keyId, number, hash, balanceNanos],
  };
}

export function readSeal(row: Row): ChainState {
  return {
    number: Number(row['number']),
    hash: String(row['hash']),
    balanceNanos: Number(row['balance']),
  };
}
