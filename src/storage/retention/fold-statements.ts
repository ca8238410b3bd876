import type { ChainState } from '../../domain/statements/chain.ts';
import type { Row, Statement } from '../engine.ts';
import { lockAccount } from '../ledger/account-statements.ts';
import { insertSeal } from '../ledger/chain-statements.ts';

/** How many accounts are looked through in one read, and how many postings are folded in one unit: some milliseconds each. */
export const accountsPerRead = 500;
export const postingsPerFold = 1_000;

/** The next accounts whose oldest posting that is not folded is from before a time. */
export function selectFoldable(keyId: string, beforeMs: number): Statement {
  return {
    sql: `SELECT accounts.key_id AS key_id, coalesce(ledger_folds.number, 0) AS folded FROM accounts
          LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id
          WHERE accounts.key_id > ? AND
            (SELECT created_at FROM ledger WHERE ledger.key_id = accounts.key_id ORDER BY number LIMIT 1) < ?
          ORDER BY accounts.key_id LIMIT ?`,
    values: [keyId, beforeMs, accountsPerRead],
  };
}

/** The postings behind a number, each with whether its record is still there. */
export function selectPostings(keyId: string, after: number): Statement {
  return {
    sql: `SELECT number, ledger.created_at AS created_at,
            CASE WHEN records.request_id IS NULL THEN 0 ELSE 1 END AS has_record
          FROM ledger LEFT JOIN records ON records.request_id = ledger.request_id
          WHERE ledger.key_id = ? AND number > ? AND number <= ? ORDER BY number`,
    values: [keyId, after, after + postingsPerFold],
  };
}

/** The number of the last of some postings that can be folded with all before it; `after` if the first one can't be. */
export function lastFoldable(postings: readonly Row[], after: number, beforeMs: number): number {
  const end = postings.findIndex(
    (row, at) =>
      Number(row['number']) !== after + at + 1 ||
      Number(row['created_at']) >= beforeMs ||
      Number(row['has_record']) === 1,
  );
  return after + (end === -1 ? postings.length : end);
}

/**
 * Folds the postings of one account up to that of a state of its chain, in one unit, which seals that state: the chain goes on
 * behind it. The fold is written only if none of them is missing: an audit must still find a ledger that was damaged. A
 * trigger lets no other rows be deleted than those that a fold stands for.
 */
export function foldLedger(keyId: string, state: ChainState): readonly Statement[] {
  const upTo = state.number;
  return [
    lockAccount(keyId),
    insertSeal(keyId, state),
    {
      sql: `INSERT INTO ledger_folds (key_id, number, credits, charges)
            SELECT CAST(? AS TEXT), CAST(? AS BIGINT),
              CAST(coalesce(sum(CASE WHEN kind = 'credit' THEN delta ELSE 0 END), 0) AS BIGINT),
              CAST(coalesce(-sum(CASE WHEN kind = 'charge' THEN delta ELSE 0 END), 0) AS BIGINT)
            FROM ledger WHERE key_id = ? AND number <= ?
            HAVING count(*) > 0 AND count(*) = ? - coalesce((SELECT number FROM ledger_folds WHERE key_id = ?), 0)
            ON CONFLICT (key_id) DO UPDATE SET number = excluded.number,
              credits = ledger_folds.credits + excluded.credits, charges = ledger_folds.charges + excluded.charges`,
      values: [keyId, upTo, keyId, upTo, upTo, keyId],
    },
    {
      sql: `INSERT INTO folded_credits (key_id, number, created_at, delta, reference, posting)
            SELECT key_id, number, created_at, delta, reference, posting FROM ledger
            WHERE key_id = ? AND number <= (SELECT number FROM ledger_folds WHERE key_id = ?) AND kind = 'credit'`,
      values: [keyId, keyId],
    },
    {
      sql: `DELETE FROM ledger WHERE key_id = ? AND number <= (SELECT number FROM ledger_folds WHERE key_id = ?)
            RETURNING number`,
      values: [keyId, keyId],
    },
  ];
}
