import { maxNanos } from '../shared/money.ts';
import type { OpenedRecord, Reservation, SettledRecord } from '../domain/consumption.ts';
import type { Row, Statement } from './engine.ts';

/** As much of a wanted hold as the balance has; nothing where there is no balance, or less than none. */
const holdable = '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < ? THEN balance ELSE ? END)';

/**
 * Begins a record and sets its hold aside, in one unit. The first statement is the only one that decides: it names the
 * request as the account's last one if there is enough, and the second writes the record only if it did.
 */
export function openRecord(record: OpenedRecord): readonly Statement[] {
  const { requestId, keyId, price, hold } = record;
  return [
    {
      sql: `UPDATE accounts SET last_request = ?, last_hold = ${holdable}, held = held + ${holdable},
              balance = balance - ${holdable}
            WHERE key_id = ? AND (balance IS NULL OR balance >= ? OR ? = 0)`,
      values: [requestId, ...Array.from({ length: 6 }, () => hold.nanos), keyId, hold.leastNanos, hold.nanos],
    },
    {
      sql: `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms,
              price_input, price_cached_input, price_cache_write, price_output, price_request, hold)
            SELECT ?, key_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, last_hold FROM accounts
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
        keyId,
        requestId,
      ],
    },
    { sql: 'SELECT balance, held FROM accounts WHERE key_id = ?', values: [keyId] },
  ];
}

/** What `openRecord` did, from the rows of its statements. */
export function readReservation(results: readonly (readonly Row[])[]): Reservation {
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
 * Ends a record, gives its hold back and charges it, in one unit. The first statement is the gate: only an open record
 * takes the settlement's name, and the others happen only under it, so a second settlement changes nothing. It charges
 * no more than the account's sum can take, and keeps what is left over as `unbooked`.
 */
export function settleRecord(
  { usage, price, ...record }: SettledRecord,
  settlement: string,
  settledAt: number,
): readonly Statement[] {
  const { requestId, chargeNanos } = record;
  return [
    {
      sql: `UPDATE records SET settlement = ?, outcome = ?, upstream = coalesce(?, upstream), attempts = ?, status = ?,
              input_tokens = ?, cached_input_tokens = ?, cache_write_tokens = ?, output_tokens = ?,
              reasoning_tokens = ?, usage_source = ?, price_input = coalesce(?, price_input),
              price_cached_input = coalesce(?, price_cached_input),
              price_cache_write = coalesce(?, price_cache_write), price_output = coalesce(?, price_output),
              charge = ${chargeable}, unbooked = ? - ${chargeable}, first_byte_ms = ?, total_ms = ?
            WHERE request_id = ? AND outcome IS NULL RETURNING request_id, unbooked`,
      values: [
        settlement,
        record.outcome,
        record.upstream,
        JSON.stringify(record.attempts),
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
        requestId,
      ],
    },
    {
      sql: `UPDATE accounts SET
              held = held - (SELECT hold FROM records WHERE request_id = ?),
              balance = balance + (SELECT hold - charge FROM records WHERE request_id = ?),
              spent = spent + (SELECT charge FROM records WHERE request_id = ?)
            WHERE key_id = (SELECT key_id FROM records WHERE request_id = ? AND settlement = ?)`,
      values: [requestId, requestId, requestId, requestId, settlement],
    },
    {
      sql: `INSERT INTO ledger (key_id, created_at, kind, delta, request_id, posting)
            SELECT key_id, ?, 'charge', -charge, request_id, settlement FROM records
            WHERE request_id = ? AND settlement = ? AND charge > 0`,
      values: [settledAt, requestId, settlement],
    },
  ];
}

/**
 * Ends the records that a process which died left open: their holds go back, and nothing is charged. What is open is
 * found by its openness alone, which has an index of its own: by key, all records that the key ever had would be read.
 */
export const closeLostRecords: readonly Statement[] = [
  {
    sql: `WITH open AS MATERIALIZED (SELECT key_id, hold FROM records WHERE outcome IS NULL)
          UPDATE accounts SET
            held = held - (SELECT sum(hold) FROM open WHERE open.key_id = accounts.key_id),
            balance = balance + (SELECT sum(hold) FROM open WHERE open.key_id = accounts.key_id)
          WHERE key_id IN (SELECT key_id FROM open)`,
    values: [],
  },
  {
    sql: `UPDATE records SET outcome = 'lost', status = 500, usage_source = 'none' WHERE outcome IS NULL RETURNING request_id`,
    values: [],
  },
];
