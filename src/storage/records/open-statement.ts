import type { OpenedRecord, Reservation } from '../../domain/money/consumption.ts';
import { inOrder } from '../engine.ts';
import type { FixedUnit, NamedValues, ResultRow, SqlValue } from '../engine.ts';

/** The types of how a record begins, but for its key and hold: what its opening writes and its settlement repeats. */
export const beginningTypes = {
  created_at: 'bigint',
  protocol: 'text',
  mode: 'text',
  model: 'text',
  upstream: 'text',
  queued_ms: 'bigint',
  price_input: 'bigint',
  price_cached_input: 'bigint',
  price_cache_write: 'bigint',
  price_output: 'bigint',
  price_request: 'bigint',
  tag: 'text',
  group_name: 'text',
} as const satisfies FixedUnit['takes'];

/** As much of a wanted hold as the balance has; nothing where there is no balance, or one below zero. */
const holdable =
  '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < :hold THEN balance ELSE :hold END)';

/** The columns of an open request but for what it holds, and the values of the same names. */
export const openColumns = ['owner', 'key_id', 'request_id', ...Object.keys(beginningTypes)];
export const openValues = openColumns.map((name) => `:${name}`).join(', ');

/**
 * Begins a record and sets its hold aside. One update decides: it returns a hold if there is enough. Otherwise the account
 * is read as it is, without a hold, and no open request is written. A request that has begun is no refused one, also when
 * its hold was the last of the balance: to begin it again is an error.
 */
export const openRecord: FixedUnit<'open_record'> = {
  name: 'open_record',
  takes: {
    owner: 'text',
    key_id: 'text',
    request_id: 'text',
    hold: 'bigint',
    least_hold: 'bigint',
    ...beginningTypes,
  },
  spreadBy: 'key_id',
  mayBeForgotten: true,
  locks: [],
  preparations: [],
  decisions: [
    `UPDATE accounts SET last_request = :request_id, last_hold = ${holdable}, held = held + ${holdable},
       balance = balance - ${holdable}
     WHERE key_id = :key_id AND (balance IS NULL OR balance >= :least_hold OR CAST(:hold AS BIGINT) = 0)
     RETURNING balance, held, last_hold`,
    'SELECT balance, held, CASE WHEN last_request = :request_id THEN last_hold END FROM accounts WHERE key_id = :key_id',
  ],
  decided: { balance: 'bigint', held: 'bigint', hold: 'bigint' },
  changes: [
    `INSERT INTO open_requests (${openColumns.join(', ')}, hold)
     SELECT ${openValues}, CAST(@hold AS BIGINT)
     WHERE CAST(@hold AS BIGINT) IS NOT NULL`,
  ],
  columns: ['balance', 'held', 'hold'],
};

/** The values of `openRecord`. */
export function valuesToOpen(record: OpenedRecord, owner: string): readonly SqlValue[] {
  return inOrder(openRecord, namedToOpen(record, owner));
}

/** The same by their names. */
export function namedToOpen({ hold, price, ...record }: OpenedRecord, owner: string): NamedValues {
  return {
    owner,
    key_id: record.keyId,
    request_id: record.requestId,
    hold: hold.nanos,
    least_hold: hold.leastNanos,
    created_at: record.createdAtMs,
    protocol: record.protocol,
    mode: record.mode,
    model: record.model,
    upstream: record.upstream,
    queued_ms: Math.round(record.queuedMs),
    price_input: price.input,
    price_cached_input: price.cachedInput,
    price_cache_write: price.cacheWrite,
    price_output: price.output,
    price_request: price.request,
    tag: record.tag,
    group_name: record.group,
  };
}

/** What `openRecord` did, from its row. */
export function readReservation(row: ResultRow): Reservation {
  const [balance = null, held = null, hold = null] = row ?? [];
  const balanceNanos = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: balanceNanos ?? 0, heldNanos: Number(held ?? 0) };
  return { granted: true, holdNanos: balanceNanos === null ? null : Number(hold), balanceNanos };
}
