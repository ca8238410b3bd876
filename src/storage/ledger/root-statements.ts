import type { AccountHead, LedgerRoot } from '../../domain/statements/root.ts';
import type { Row, Statement } from '../engine.ts';

/** How many accounts are read at once, and have their heads stored in one unit: some milliseconds each. */
export const accountsPerRead = 200;

/** The next accounts whose ledgers have grown since the newest head that is stored of them, with their last rows. */
export function selectGrown(afterKeyId: string): Statement {
  return {
    sql: `SELECT accounts.key_id AS key_id, postings FROM accounts
          WHERE accounts.key_id > ? AND postings > coalesce(
            (SELECT number FROM ledger_heads WHERE ledger_heads.key_id = accounts.key_id ORDER BY root DESC LIMIT 1), 0)
          ORDER BY accounts.key_id LIMIT ?`,
    values: [afterKeyId, accountsPerRead],
  };
}

/** How often heads were stored: a root is stored only if none was since its own were read. */
export const selectHeadChanges: Statement = {
  sql: 'SELECT changes FROM ledger_root_work WHERE id = 1',
  values: [],
};

/** Locks the making of roots, first in every unit of it, and counts a change of the heads. */
export const countHeadChange: Statement = {
  sql: 'UPDATE ledger_root_work SET changes = changes + 1 WHERE id = 1',
  values: [],
};

/**
 * Stores the head of an account for a root that is not made yet, and removes those that only roots before the last one had:
 * the last one must stay provable until the next is there.
 */
export function storeHead(root: number, { keyId, number, hash }: AccountHead): readonly Statement[] {
  return [
    {
      sql: `DELETE FROM ledger_heads WHERE key_id = ? AND root <
              (SELECT max(root) FROM ledger_heads WHERE key_id = ? AND root < ?)`,
      values: [keyId, keyId, root],
    },
    {
      sql: `INSERT INTO ledger_heads (key_id, root, number, hash)
            SELECT CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT)
            WHERE NOT EXISTS (SELECT 1 FROM ledger_roots WHERE number >= ?)
            ON CONFLICT (key_id, root) DO UPDATE SET number = excluded.number, hash = excluded.hash`,
      values: [keyId, root, number, hash, root],
    },
  ];
}

/** The next heads of a root: of each account the newest one that is not of a later root. */
export function selectHeads(root: number, afterKeyId: string): Statement {
  return {
    sql: `SELECT key_id, number, hash FROM ledger_heads WHERE key_id > ? AND root = (
            SELECT max(others.root) FROM ledger_heads AS others
            WHERE others.key_id = ledger_heads.key_id AND others.root <= ?)
          ORDER BY key_id LIMIT ?`,
    values: [afterKeyId, root, accountsPerRead],
  };
}

/** The roots before a number, newest first. */
export function selectRoots(before: number, limit: number): Statement {
  return {
    sql: `SELECT number, created_at, previous, tree, accounts, hash FROM ledger_roots
          WHERE number < ? ORDER BY number DESC LIMIT ?`,
    values: [before, limit],
  };
}

/** Stores a root behind the last one, unless heads were stored since they were counted. */
export function storeRoot(
  { number, madeAtMs, previous, tree, accounts, hash }: LedgerRoot,
  headChanges: number,
): readonly Statement[] {
  return [
    { sql: 'UPDATE ledger_root_work SET changes = changes WHERE id = 1', values: [] },
    {
      sql: `INSERT INTO ledger_roots (number, created_at, previous, tree, accounts, hash)
            SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT)
            FROM ledger_root_work WHERE id = 1 AND changes = ?
            ON CONFLICT (number) DO NOTHING RETURNING number`,
      values: [number, madeAtMs, previous, tree, accounts, hash, headChanges],
    },
  ];
}

export function readRoot(row: Row): LedgerRoot {
  return {
    number: Number(row['number']),
    madeAtMs: Number(row['created_at']),
    previous: String(row['previous']),
    tree: String(row['tree']),
    accounts: Number(row['accounts']),
    hash: String(row['hash']),
  };
}
