import type { BudgetOwner } from '../../domain/budgets/budget.ts';
import type { SettledRecord } from '../../domain/money/consumption.ts';
import { maxNanos } from '../../shared/money.ts';
import { repeated } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue, Statement } from '../engine.ts';
import { settlingIn, valuesOfBudget } from './settle-in-budgets.ts';
import { writeAttempts, writeFailure } from './stored-attempts.ts';
import { valuesOfBeginning } from './stored-beginning.ts';

/**
 * A charge as far as what its key has spent stays an exact number; nothing once it is none. A balance is never further
 * below zero than what was spent, so it stays exact, too.
 */
const chargeable = `(CASE WHEN spent > ${maxNanos} THEN 0 WHEN spent > ${maxNanos} - ?3 THEN ${maxNanos} - spent
  ELSE CAST(?3 AS BIGINT) END)`;

/** The key of the request that is settled, as its beginning says. */
const begunKey = 'coalesce((SELECT key_id FROM open_requests WHERE request_id = ?1), ?21)';

type SettlementName = 'settle_record' | 'settle_budgeted' | 'settle_grouped' | 'settle_both';

/** How a record's beginning was found, in its column `late`. */
const lateness = { inTime: 0, wasLost: 1, wasForgotten: 2 } as const;

/** What the row that decides a settlement returns, in the order of `decided`; `givenBack` is what its request still holds. */
const returning = (givenBack: string): string =>
  `RETURNING key_id, charge, ${givenBack} AS given_back, late, unbooked`;

/** The types of the values of every settlement. */
const recordTypes: FixedUnit['types'] = [
  ...repeated('text', 2),
  ...repeated('bigint', 2),
  ...repeated('text', 3),
  ...repeated('bigint', 6),
  'text',
  ...repeated('bigint', 6),
  'text',
  'bigint',
  ...repeated('text', 4),
  ...repeated('bigint', 6),
  ...repeated('text', 2),
  'bigint',
  'text',
];

/**
 * Ends a record, gives its hold back and charges it. What decides is that the record is written under the settlement's name:
 * the others happen only then, so a second settlement changes nothing. A record that was closed as lost is overtaken, once:
 * its process was taken for dead, yet its answer went out and has to be paid for. So does one whose beginning is nowhere: a
 * power failure may forget that, and the settlement has all of it; unless records of its time were removed: then its own may
 * have been among them, and it would be charged twice. No more is charged than the account's sum can take; what
 * is left over is kept as `unbooked`.
 *
 * Only a record that exists already is looked for: on PostgreSQL, what reads or updates records costs a lock of each
 * partition, and an insert without a named column for its conflict the least (no other column of theirs is unique). The one
 * row of the removals is found by its id: a table that is read whole counts as so expensive in this function that the server
 * would compile the statement first, for half a second.
 */
function settlementOf<Name extends SettlementName>(
  name: Name,
  owners: readonly BudgetOwner[],
): FixedUnit<Name> {
  const budgets = owners.map((owner, at) => settlingIn(owner, at, recordTypes.length));
  const columns = budgets.map((budget) => budget.columns).join('');
  const values = budgets.map((budget) => budget.values).join('');
  return {
    name,
    types: [...recordTypes, ...budgets.flatMap(({ types }) => types)],
    spreadBy: 20,
    mayBeForgotten: false,
    locks: [
      { table: 'accounts', where: `key_id = ${begunKey}` },
      { table: 'accounts', where: 'key_id = (SELECT key_id FROM records WHERE request_id = ?1)' },
    ],
    preparations: [],
    decisions: [
      `INSERT INTO records (request_id, settlement, late, charge, unbooked, outcome, upstream, attempts, status,
       input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, usage_source,
       price_input, price_cached_input, price_cache_write, price_output, price_request, first_byte_ms, total_ms,
       key_id, created_at, protocol, mode, model, queued_ms, tag, group_name, hold, failure${columns})
     SELECT ?1, ?2, CASE WHEN begun.hold IS NULL THEN ${lateness.wasForgotten} ELSE ${lateness.inTime} END,
       ${chargeable}, ?3 - ${chargeable}, ?5, coalesce(?6, begun.upstream, ?26), ?7, ?8,
       ?9, ?10, ?11, ?12, ?13, ?14,
       coalesce(?15, begun.price_input, ?28), coalesce(?16, begun.price_cached_input, ?29),
       coalesce(?17, begun.price_cache_write, ?30), coalesce(?18, begun.price_output, ?31),
       coalesce(begun.price_request, ?32), ?19, ?20,
       accounts.key_id, coalesce(begun.created_at, ?22), coalesce(begun.protocol, ?23), coalesce(begun.mode, ?24),
       coalesce(begun.model, ?25), coalesce(begun.queued_ms, ?27), coalesce(begun.tag, ?33),
       coalesce(begun.group_name, ?34), coalesce(begun.hold, ?35, 0), ?36${values}
     FROM accounts LEFT JOIN open_requests AS begun ON begun.request_id = ?1
     WHERE accounts.key_id = ${begunKey}
       AND (begun.hold IS NOT NULL OR ?22 >= coalesce((SELECT removed_before FROM record_removals WHERE id = 1), ?22))
     ON CONFLICT DO NOTHING ${returning(`CASE WHEN late = ${lateness.inTime} THEN hold ELSE 0 END`)}`,
      `UPDATE records SET settlement = ?2, late = ${lateness.wasLost},
       charge = (SELECT ${chargeable} FROM accounts WHERE key_id = records.key_id),
       unbooked = ?3 - (SELECT ${chargeable} FROM accounts WHERE key_id = records.key_id),
       outcome = ?5, upstream = coalesce(?6, upstream), attempts = ?7, status = ?8,
       input_tokens = ?9, cached_input_tokens = ?10, cache_write_tokens = ?11, output_tokens = ?12,
       reasoning_tokens = ?13, usage_source = ?14, price_input = coalesce(?15, price_input),
       price_cached_input = coalesce(?16, price_cached_input), price_cache_write = coalesce(?17, price_cache_write),
       price_output = coalesce(?18, price_output), first_byte_ms = ?19, total_ms = ?20, failure = ?36
     WHERE request_id = ?1 AND outcome = 'lost' AND settlement IS NULL
     ${returning('coalesce((SELECT hold FROM open_requests WHERE request_id = ?1), 0)')}`,
    ],
    decided: { key_id: 'text', charge: 'bigint', given_back: 'bigint', late: 'bigint', unbooked: 'bigint' },
    changes: [
      `UPDATE accounts SET held = held - :given_back, balance = balance + :given_back - :charge, spent = spent + :charge,
       postings = postings + CASE WHEN :charge > 0 THEN 1 ELSE 0 END, last_request = NULL, last_hold = NULL
     WHERE key_id = :key_id`,
      `INSERT INTO ledger (key_id, number, created_at, kind, delta, request_id, posting)
     SELECT key_id, postings, CAST(?4 AS BIGINT), 'charge', -CAST(:charge AS BIGINT), ?1, ?2 FROM accounts
     WHERE key_id = :key_id AND :charge > 0`,
      ...budgets.map(({ change }) => change),
      'DELETE FROM open_requests WHERE request_id = ?1',
    ],
    columns: ['late', 'unbooked'],
  };
}

/** Settles a record that counts in no budget. */
export const settleRecord = settlementOf('settle_record', []);

/** The units that settle a record, by what it counts in: nothing, the budget of its key, that of the group, or both. */
export const settlementUnits = {
  settle_record: settleRecord,
  settle_budgeted: settlementOf('settle_budgeted', ['key']),
  settle_grouped: settlementOf('settle_grouped', ['group']),
  settle_both: settlementOf('settle_both', ['key', 'group']),
};

/** The unit that settles a record, by how it was begun. */
export function settlementFor({ begun }: Pick<SettledRecord, 'begun'>): FixedUnit {
  const [first, second] = begun?.budgets ?? [];
  if (first === undefined) return settleRecord;
  if (second !== undefined) return settlementUnits.settle_both;
  return first.owner === 'group' ? settlementUnits.settle_grouped : settlementUnits.settle_budgeted;
}

/** The values of `settlementFor`. */
export function valuesToSettle(
  { usage, price, begun, ...record }: SettledRecord,
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
    ...(begun === null ? unknownBeginning : [begun.keyId, ...valuesOfBeginning(begun), begun.holdNanos]),
    writeFailure(record.failure),
    ...(begun?.budgets ?? []).flatMap(valuesOfBudget),
  ];
}

/** The values in the place of a beginning that is not known. */
const unknownBeginning: readonly SqlValue[] = Array<null>(15).fill(null);

/** What a settlement did, from its row; `null` when there was nothing to settle. */
export function readSettlement(row: ResultRow): {
  readonly unbookedNanos: number;
  /** Whether the record was open, closed as lost, or nowhere. */
  readonly found: 'open' | 'lost' | 'nowhere';
} | null {
  if (row === null) return null;
  const [late, unbooked] = row;
  const found =
    Number(late) === lateness.inTime ? 'open' : Number(late) === lateness.wasLost ? 'lost' : 'nowhere';
  return { unbookedNanos: Number(unbooked), found };
}

/** Counts the settlements that are this one and no other: 1 or 0. */
export function countSettlements({ requestId, outcome, chargeNanos }: SettledRecord): Statement {
  return {
    sql: 'SELECT count(*) AS count FROM records WHERE request_id = ? AND outcome = ? AND charge + unbooked = ?',
    values: [requestId, outcome, chargeNanos],
  };
}
