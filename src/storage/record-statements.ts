import { maxNanos } from '../shared/money.ts';
import type { OpenedRecord, Reservation, SettledRecord } from '../domain/consumption.ts';
import { lockAccountOf } from './account-statements.ts';
import type { Results, Statement } from './engine.ts';
import { takeLease } from './lease-statements.ts';
import { writeAttempts } from './stored-attempts.ts';

/** As much of a wanted hold as the balance has; nothing where there is no balance, or one below zero. */
const holdable = '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < ? THEN balance ELSE ? END)';

/**
 * Begins a record and sets its hold aside, in one unit. The first statement is the only one that decides: it names the
 * request as the account's last one if there is enough, and the second writes the record only if it did. The owner has a
 * lease from then on, so that no other process takes the record for one that was left open.
 */
export function openRecord(record: OpenedRecord, owner: string): readonly Statement[] {
  const { requestId, keyId, price, hold } = record;
  return [
    {
      sql: `UPDATE accounts SET last_request = ?, last_hold = ${holdable}, held = held + ${holdable},
              balance = balance - ${holdable}
            WHERE key_id = ? AND (balance IS NULL OR balance >= ? OR CAST(? AS BIGINT) = 0)`,
      values: [requestId, ...Array.from({ length: 6 }, () => hold.nanos), keyId, hold.leastNanos, hold.nanos],
    },
    {
      sql: `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms,
              price_input, price_cached_input, price_cache_write, price_output, price_request, owner, hold)
            SELECT ?, key_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, last_hold FROM accounts
            WHERE key_id = ? AND last_request = ? RETURNING hold`,
      values: [
        requestId,
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
        owner,
        keyId,
        requestId,
      ],
    },
    { sql: 'SELECT balance, held FROM accounts WHERE key_id = ?', values: [keyId] },
    takeLease(owner),
  ];
}

/** What `openRecord` did, from the rows of its statements. */
export function readReservation(results: Results): Reservation {
  const [, [opened] = [], [account] = []] = results;
  const balance = account?.['balance'] ?? null;
  const balanceNanos = balance === null ? null : Number(balance);
  if (opened === undefined)
    return { granted: false, balanceNanos: balanceNanos ?? 0, heldNanos: Number(account?.['held'] ?? 0) };
  return { granted: true, holdNanos: balanceNanos === null ? null : Number(opened['hold']), balanceNanos };
}

/**
 * A charge as far as what its key has spent stays an exact number; nothing once it is none. A balance is never further
 * below zero than what was spent, so it stays exact, too.
 */
const chargeable = `(SELECT CASE WHEN spent > ${maxNanos} THEN 0 WHEN spent > ${maxNanos} - ? THEN ${maxNanos} - spent
                ELSE ? END FROM accounts WHERE key_id = records.key_id)`;

/**
 * The records that a settlement may end: open ones, and those that were closed as lost. The process of such a request was
 * taken for dead, yet its answer went out and has to be paid for. A record that was closed as lost has no settlement
 * until then, so this happens once.
 */
const canBeSettled = `(outcome IS NULL OR (outcome = 'lost' AND settlement IS NULL))`;

/** What a settlement gives back of a hold: nothing where the record was closed before, which gave all of it back. */
const givenBack = 'CASE WHEN late = 0 THEN hold ELSE 0 END';

/**
 * Ends a record, gives its hold back and charges it, in one unit. It locks the account; the second statement is the
 * gate: it writes the settlement's name into the record, and the others happen only under that name, so a second
 * settlement changes nothing. It charges no more than the account's sum can take, and keeps what is left over as
 * `unbooked`.
 */
export function settleRecord(
  record: SettledRecord,
  settlement: string,
  settledAt: number,
): readonly Statement[] {
  const { requestId } = record;
  return [
    lockAccountOf(requestId),
    endRecord(record, settlement),
    {
      sql: `UPDATE accounts SET
              held = held - (SELECT ${givenBack} FROM records WHERE request_id = ?),
              balance = balance + (SELECT ${givenBack} - charge FROM records WHERE request_id = ?),
              spent = spent + (SELECT charge FROM records WHERE request_id = ?),
              postings = postings + (SELECT CASE WHEN charge > 0 THEN 1 ELSE 0 END FROM records WHERE request_id = ?)
            WHERE key_id = (SELECT key_id FROM records WHERE request_id = ? AND settlement = ?)`,
      values: [requestId, requestId, requestId, requestId, requestId, settlement],
    },
    {
      sql: `INSERT INTO ledger (key_id, created_at, kind, delta, request_id, posting)
            SELECT key_id, CAST(? AS BIGINT), 'charge', -charge, request_id, settlement FROM records
            WHERE request_id = ? AND settlement = ? AND charge > 0`,
      values: [settledAt, requestId, settlement],
    },
  ];
}

/** What the unit of `settleRecord` did, from the rows of its statements; `null` when there was nothing to settle. */
export function readSettlement(
  results: Results,
): { readonly unbookedNanos: number; readonly isLate: boolean } | null {
  const [, [settled] = []] = results;
  if (settled === undefined) return null;
  return { unbookedNanos: Number(settled['unbooked']), isLate: Number(settled['late']) !== 0 };
}

/** The gate of a settlement: writes all that it says into the record, if that can be settled. */
function endRecord({ usage, price, ...record }: SettledRecord, settlement: string): Statement {
  const { chargeNanos } = record;
  return {
    sql: `UPDATE records SET settlement = ?, late = CASE WHEN outcome IS NULL THEN 0 ELSE 1 END, owner = NULL,
            outcome = ?, upstream = coalesce(?, upstream), attempts = ?, status = ?,
            input_tokens = ?, cached_input_tokens = ?, cache_write_tokens = ?, output_tokens = ?,
            reasoning_tokens = ?, usage_source = ?, price_input = coalesce(?, price_input),
            price_cached_input = coalesce(?, price_cached_input),
            price_cache_write = coalesce(?, price_cache_write), price_output = coalesce(?, price_output),
            charge = ${chargeable}, unbooked = ? - ${chargeable}, first_byte_ms = ?, total_ms = ?
          WHERE request_id = ? AND ${canBeSettled} RETURNING late, unbooked`,
    values: [
      settlement,
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
      chargeNanos,
      chargeNanos,
      chargeNanos,
      chargeNanos,
      chargeNanos,
      record.firstTextMs === null ? null : Math.round(record.firstTextMs),
      Math.round(record.totalMs),
      record.requestId,
    ],
  };
}

/** Counts the settlements that are this one and no other: 1 or 0. */
export function countSettlements({ requestId, outcome, chargeNanos }: SettledRecord): Statement {
  return {
    sql: 'SELECT count(*) AS count FROM records WHERE request_id = ? AND outcome = ? AND charge + unbooked = ?',
    values: [requestId, outcome, chargeNanos],
  };
}
