import type { OpenedRecord, Reservation } from '../../domain/money/consumption.ts';
import { repeated } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue } from '../engine.ts';
import { valuesOfBeginning } from './stored-beginning.ts';

/** As much of a wanted hold as the balance has; nothing where there is no balance, or one below zero. */
const holdable =
  '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < ?4 THEN balance ELSE ?4 END)';

/**
 * Begins a record and sets its hold aside. One update decides: it returns a hold if there is enough. Otherwise the account
 * is read as it is, without a hold, and no open request is written. A request that has begun is no refused one, also when
 * its hold was the last of the balance: to begin it again is an error.
 */
export const openRecord: FixedUnit<'open_record'> = {
  name: 'open_record',
  types: [
    ...repeated('text', 3),
    ...repeated('bigint', 3),
    ...repeated('text', 4),
    ...repeated('bigint', 6),
    ...repeated('text', 2),
  ],
  spreadBy: 1,
  mayBeForgotten: true,
  locks: [],
  preparations: [],
  decisions: [
    `UPDATE accounts SET last_request = ?3, last_hold = ${holdable}, held = held + ${holdable},
       balance = balance - ${holdable}
     WHERE key_id = ?2 AND (balance IS NULL OR balance >= ?5 OR CAST(?4 AS BIGINT) = 0)
     RETURNING balance, held, last_hold`,
    'SELECT balance, held, CASE WHEN last_request = ?3 THEN last_hold END FROM accounts WHERE key_id = ?2',
  ],
  decided: { balance: 'bigint', held: 'bigint', hold: 'bigint' },
  changes: [
    `INSERT INTO open_requests (owner, key_id, request_id, created_at, protocol, mode, model, upstream, queued_ms,
       price_input, price_cached_input, price_cache_write, price_output, price_request, tag, group_name, hold)
     SELECT ?1, ?2, ?3, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, CAST(:hold AS BIGINT)
     WHERE CAST(:hold AS BIGINT) IS NOT NULL`,
  ],
  columns: ['balance', 'held', 'hold'],
};

/** The values of `openRecord`. */
export function valuesToOpen({ hold, ...record }: OpenedRecord, owner: string): readonly SqlValue[] {
  return [owner, record.keyId, record.requestId, hold.nanos, hold.leastNanos, ...valuesOfBeginning(record)];
}

/** What `openRecord` did, from its row. */
export function readReservation(row: ResultRow): Reservation {
  const [balance = null, held = null, hold = null] = row ?? [];
  const balanceNanos = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: balanceNanos ?? 0, heldNanos: Number(held ?? 0) };
  return { granted: true, holdNanos: balanceNanos === null ? null : Number(hold), balanceNanos };
}
