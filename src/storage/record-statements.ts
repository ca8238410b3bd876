import { maxNanos } from '../shared/money.ts';
import type { OpenedRecord, Reservation, SettledRecord } from '../domain/consumption.ts';
import type { FixedType, FixedUnit, ResultRow, SqlValue, Statement } from './engine.ts';
import { takeLease } from './lease-statements.ts';
import { writeAttempts } from './stored-attempts.ts';

/** The types of some values that follow each other. */
const repeated = (type: FixedType, count: number): readonly FixedType[] => Array<FixedType>(count).fill(type);

/** As much of a wanted hold as the balance has; nothing where there is no balance, or one below zero. */
const holdable =
  '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < ?4 THEN balance ELSE ?4 END)';

/**
 * Begins a record and sets its hold aside. The first statement is the only one that decides: it names the request as the
 * account's last one if there is enough, and the second writes the record only if it did. The owner has a lease from
 * then on, so that no other process takes the record for one that was left open.
 */
export const openRecord: FixedUnit<'open_record'> = {
  name: 'open_record',
  types: [...repeated('text', 3), ...repeated('bigint', 3), ...repeated('text', 4), ...repeated('bigint', 6)],
  spreadBy: 1,
  locks: [],
  changes: [
    `UPDATE accounts SET last_request = ?3, last_hold = ${holdable}, held = held + ${holdable},
       balance = balance - ${holdable}
     WHERE key_id = ?2 AND (balance IS NULL OR balance >= ?5 OR CAST(?4 AS BIGINT) = 0)`,
    `INSERT INTO records (owner, key_id, request_id, created_at, protocol, mode, model, upstream, queued_ms,
       price_input, price_cached_input, price_cache_write, price_output, price_request, hold)
     SELECT ?1, key_id, ?3, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, last_hold FROM accounts
     WHERE key_id = ?2 AND last_request = ?3`,
    takeLease,
  ],
  result: `SELECT balance, held, CASE WHEN last_request = ?3 THEN last_hold END AS hold
           FROM accounts WHERE key_id = ?2`,
  columns: ['balance', 'held', 'hold'],
};

/** The values of `openRecord`. */
export function valuesToOpen(record: OpenedRecord, owner: string): readonly SqlValue[] {
  const { price, hold } = record;
  return [
    owner,
    record.keyId,
    record.requestId,
    hold.nanos,
    hold.leastNanos,
    record.createdAtMs,
    record.protocol,
    record.mode,
    record.model,
    record.upstream,
    Math.round(record.queuedMs),
    price.input,
    price.cachedInput,
    price.cacheWrite,
    price.output,
    price.request,
  ];
}

/** What `openRecord` did, from its row. */
export function readReservation(row: ResultRow): Reservation {
  const [balance = null, held = null, hold = null] = row ?? [];
  const balanceNanos = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: balanceNanos ?? 0, heldNanos: Number(held ?? 0) };
  return { granted: true, holdNanos: balanceNanos === null ? null : Number(hold), balanceNanos };
}

/**
 * A charge as far as what its key has spent stays an exact number; nothing once it is none. A balance is never further
 * below zero than what was spent, so it stays exact, too.
 */
const chargeable = `(SELECT CASE WHEN spent > ${maxNanos} THEN 0 WHEN spent > ${maxNanos} - ?3 THEN ${maxNanos} - spent
                ELSE ?3 END FROM accounts WHERE key_id = records.key_id)`;

/**
 * The records that a settlement may end: open ones, and those that were closed as lost. The process of such a request was
 * taken for dead, yet its answer went out and has to be paid for. A record that was closed as lost has no settlement
 * until then, so this happens once.
 */
const canBeSettled = `(outcome IS NULL OR (outcome = 'lost' AND settlement IS NULL))`;

/** What a settlement gives back of a hold: nothing where the record was closed before, which gave all of it back. */
const givenBack = 'CASE WHEN late = 0 THEN hold ELSE 0 END';

/**
 * Ends a record, gives its hold back and charges it. It locks the account; the first change is the gate: it writes the
 * settlement's name into the record, and the others happen only under that name, so a second settlement changes nothing.
 * It charges no more than the account's sum can take, and keeps what is left over as `unbooked`.
 */
export const settleRecord: FixedUnit<'settle_record'> = {
  name: 'settle_record',
  types: [
    ...repeated('text', 2),
    ...repeated('bigint', 2),
    ...repeated('text', 3),
    ...repeated('bigint', 6),
    'text',
    ...repeated('bigint', 6),
  ],
  spreadBy: 0,
  locks: [{ table: 'accounts', where: 'key_id = (SELECT key_id FROM records WHERE request_id = ?1)' }],
  changes: [
    `UPDATE records SET settlement = ?2, late = CASE WHEN outcome IS NULL THEN 0 ELSE 1 END, owner = NULL,
       charge = ${chargeable}, unbooked = ?3 - ${chargeable},
       outcome = ?5, upstream = coalesce(?6, upstream), attempts = ?7, status = ?8,
       input_tokens = ?9, cached_input_tokens = ?10, cache_write_tokens = ?11, output_tokens = ?12,
       reasoning_tokens = ?13, usage_source = ?14, price_input = coalesce(?15, price_input),
       price_cached_input = coalesce(?16, price_cached_input), price_cache_write = coalesce(?17, price_cache_write),
       price_output = coalesce(?18, price_output), first_byte_ms = ?19, total_ms = ?20
     WHERE request_id = ?1 AND ${canBeSettled}`,
    `UPDATE accounts SET (held, balance, spent, postings) =
       (SELECT accounts.held - ${givenBack}, accounts.balance + ${givenBack} - charge, accounts.spent + charge,
          accounts.postings + CASE WHEN charge > 0 THEN 1 ELSE 0 END
        FROM records WHERE request_id = ?1)
     WHERE key_id = (SELECT key_id FROM records WHERE request_id = ?1 AND settlement = ?2)`,
    `INSERT INTO ledger (key_id, created_at, kind, delta, request_id, posting)
     SELECT key_id, CAST(?4 AS BIGINT), 'charge', -charge, request_id, settlement FROM records
     WHERE request_id = ?1 AND settlement = ?2 AND charge > 0`,
  ],
  result: 'SELECT late, unbooked FROM records WHERE request_id = ?1 AND settlement = ?2',
  columns: ['late', 'unbooked'],
};

/** The values of `settleRecord`. */
export function valuesToSettle(
  { usage, price, ...record }: SettledRecord,
  settlement: string,
  settledAtMs: number,
): readonly SqlValue[] {
  return [
    record.requestId,
    settlement,
    record.chargeNanos,
    settledAtMs,
    record.outcome,
    record.upstream,
    writeAttempts(record.attempts),
    record.status,
    usage?.inputTokens ?? null,
    usage?.cachedInputTokens ?? null,
    usage?.cacheWriteTokens ?? null,
    usage?.outputTokens ?? null,
    usage?.reasoningTokens ?? null,
    record.usageSource,
    price?.input ?? null,
    price?.cachedInput ?? null,
    price?.cacheWrite ?? null,
    price?.output ?? null,
    record.firstTextMs === null ? null : Math.round(record.firstTextMs),
    Math.round(record.totalMs),
  ];
}

/** What `settleRecord` did, from its row; `null` when there was nothing to settle. */
export function readSettlement(
  row: ResultRow,
): { readonly unbookedNanos: number; readonly isLate: boolean } | null {
  if (row === null) return null;
  const [late, unbooked] = row;
  return { unbookedNanos: Number(unbooked), isLate: Number(late) !== 0 };
}

/** Counts the settlements that are this one and no other: 1 or 0. */
export function countSettlements({ requestId, outcome, chargeNanos }: SettledRecord): Statement {
  return {
    sql: 'SELECT count(*) AS count FROM records WHERE request_id = ? AND outcome = ? AND charge + unbooked = ?',
    values: [requestId, outcome, chargeNanos],
  };
}
