import { maxNanos } from '../shared/money.ts';
import { coveringReference } from '../domain/account.ts';
import type { Credit } from '../domain/account.ts';
import type { Statement } from './engine.ts';

/**
 * Books a credit, in one unit. The first statement is the gate: a payment that is booked already keeps its own posting,
 * and the others happen only under this one's. What a key spent while it had no balance is covered with its first
 * credit, so that what was paid in is always what is free, held and spent.
 */
export function bookCredit(
  { keyId, nanos, reference }: Credit,
  posting: string,
  bookedAt: number,
): readonly Statement[] {
  return [
    {
      sql: `INSERT INTO ledger (key_id, created_at, kind, delta, reference, posting)
            SELECT key_id, ?, 'credit', ?, ?, ? FROM accounts WHERE key_id = ?
              AND coalesce(balance, 0) + held + spent <= ?
              AND NOT EXISTS (SELECT 1 FROM ledger WHERE key_id = ? AND reference = ?)`,
      values: [bookedAt, nanos, reference, posting, keyId, maxNanos - nanos, keyId, reference],
    },
    {
      sql: `INSERT INTO ledger (key_id, created_at, kind, delta, reference, posting)
            SELECT key_id, ?, 'credit', spent, ?, ? FROM accounts WHERE key_id = ? AND balance IS NULL AND spent > 0
              AND EXISTS (SELECT 1 FROM ledger WHERE key_id = ? AND reference = ? AND posting = ?)`,
      values: [bookedAt, coveringReference, posting, keyId, keyId, reference, posting],
    },
    {
      sql: `UPDATE accounts SET balance = coalesce(balance, 0) + ?
            WHERE key_id = ?
              AND EXISTS (SELECT 1 FROM ledger WHERE key_id = ? AND reference = ? AND posting = ?)`,
      values: [nanos, keyId, keyId, reference, posting],
    },
    {
      sql: `SELECT delta, posting, balance, held, spent FROM ledger JOIN accounts ON accounts.key_id = ledger.key_id
            WHERE ledger.key_id = ? AND reference = ?`,
      values: [keyId, reference],
    },
  ];
}

export function selectAccounts(keyIds: readonly string[]): Statement {
  const places = keyIds.map(() => '?').join(', ');
  return {
    sql: `SELECT key_id, balance, held, spent FROM accounts WHERE key_id IN (${places})`,
    values: keyIds,
  };
}
