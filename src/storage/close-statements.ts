import { placesOf } from './engine.ts';
import type { Row, Statement } from './engine.ts';
import { hasNoLease } from './lease-statements.ts';

/** The open records that one owner may close: its own, and those whose owners have no lease. */
export function selectClosable(owner: string): Statement {
  return {
    sql: `SELECT request_id, created_at FROM records WHERE outcome IS NULL AND (owner = ? OR ${hasNoLease})`,
    values: [owner],
  };
}

/** Closes as lost the open records whose owners have no lease. */
export function closeWithoutLease(): readonly Statement[] {
  return closeAsLost(hasNoLease, []);
}

/** Closes as lost those of some records that are open and that one owner may close. */
export function closeOpen(requestIds: readonly string[], owner: string): readonly Statement[] {
  const places = placesOf(requestIds);
  // Asked again, because an owner may have renewed its lease since its records were listed.
  return closeAsLost(`(owner = ? OR ${hasNoLease}) AND request_id IN (${places})`, [owner, ...requestIds]);
}

/**
 * Closes open records under a condition: their holds go back, and nothing is charged. They get no settlement, so that a
 * true one may still overtake the closing. What is open is found by its openness alone, which has an index of its own:
 * by key, all records that the key ever had would be read. The accounts are locked first, like that of
 * every money unit; an engine that runs units at once has to lock them in the order of their keys.
 */
function closeAsLost(condition: string, values: Statement['values']): readonly Statement[] {
  const isClosed = `outcome IS NULL AND ${condition}`;
  return [
    {
      sql: `UPDATE accounts SET held = held WHERE key_id IN (SELECT key_id FROM records WHERE ${isClosed})`,
      values,
    },
    {
      sql: `WITH open AS MATERIALIZED (SELECT key_id, hold FROM records WHERE ${isClosed})
            UPDATE accounts SET
              held = held - (SELECT sum(hold) FROM open WHERE open.key_id = accounts.key_id),
              balance = balance + (SELECT sum(hold) FROM open WHERE open.key_id = accounts.key_id)
            WHERE key_id IN (SELECT key_id FROM open)`,
      values,
    },
    {
      sql: `UPDATE records SET outcome = 'lost', status = 500, usage_source = 'none' WHERE ${isClosed}
            RETURNING request_id`,
      values,
    },
  ];
}

/** The number of records that a closing unit closed. */
export function readClosed([, , closed = []]: readonly (readonly Row[])[]): number {
  return closed.length;
}
