import type { Credit } from '../domain/account.ts';
import type { Statement } from './engine.ts';

/**
 * Books a credit, in one unit. The first statement is the gate: a payment that is booked already keeps its own posting,
 * and the balance grows only under this one's.
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
            ON CONFLICT (key_id, reference) DO NOTHING`,
      values: [bookedAt, nanos, reference, posting, keyId],
    },
    {
      sql: `UPDATE accounts SET balance = coalesce(balance, 0) + ?
            WHERE key_id = ? AND EXISTS (SELECT 1 FROM ledger WHERE key_id = ? AND posting = ?)`,
      values: [nanos, keyId, keyId, posting],
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
