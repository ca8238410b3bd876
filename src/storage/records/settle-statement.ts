import type { BudgetOwner } from '../../domain/budgets/budget.ts';
import type { SettledRecord } from '../../domain/money/consumption.ts';
import { maxNanos } from '../../shared/money.ts';
import { inOrder } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue, Statement } from '../engine.ts';
import { settlingIn } from './settle-in-budgets.ts';
import {
  begunColumns,
  endedColumns,
  namedToSettle,
  pricedColumns,
  settledTypes,
  tokenColumns,
} from './settled-values.ts';

/**
 * A charge as far as what its key has spent stays an exact number; nothing once it is none. A balance is never further
 * below zero than what was spent, so it stays exact, too.
 */
const chargeable = `(CASE WHEN spent > ${maxNanos} THEN 0 WHEN spent > ${maxNanos} - :charge THEN ${maxNanos} - spent
  ELSE CAST(:charge AS BIGINT) END)`;

/** The key of the request that is settled, as its beginning says. */
const begunKey = 'coalesce((SELECT key_id FROM open_requests WHERE request_id = :request_id), :begun_key_id)';

type SettlementName = 'settle_record' | 'settle_budgeted' | 'settle_grouped' | 'settle_both';

/** How a record's beginning was found, in its column `late`. */
const lateness = { inTime: 0, wasLost: 1, wasForgotten: 2 } as const;

/** What the row that decides a settlement returns, in the order of `decided`; `givenBack` is what its request still holds. */
const returning = (givenBack: string): string =>
  `RETURNING key_id, charge, ${givenBack} AS given_back, late, unbooked`;

const listed = (columns: readonly string[], write: (column: string) => string): string =>
  columns.map(write).join(', ');

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
  const budgets = owners.map(settlingIn);
  const columns = budgets.map((budget) => budget.columns).join('');
  const values = budgets.map((budget) => budget.values).join('');
  return {
    name,
    takes: Object.assign({}, settledTypes, ...budgets.map(({ types }) => types)) as FixedUnit['takes'],
    spreadBy: 'begun_key_id',
    mayBeForgotten: false,
    locks: [
      { table: 'accounts', where: `key_id = ${begunKey}` },
      { table: 'accounts', where: 'key_id = (SELECT key_id FROM records WHERE request_id = :request_id)' },
    ],
    preparations: [],
    decisions: [
      `INSERT INTO records (request_id, settlement, late, charge, unbooked, outcome, upstream, attempts, status,
       ${tokenColumns.join(', ')}, usage_source, ${pricedColumns.join(', ')}, price_request,
       first_byte_ms, total_ms, key_id, ${begunColumns.join(', ')}, hold, failure${columns})
     SELECT :request_id, :settlement,
       CASE WHEN begun.hold IS NULL THEN ${lateness.wasForgotten} ELSE ${lateness.inTime} END,
       ${chargeable}, :charge - ${chargeable}, :outcome, coalesce(:upstream, begun.upstream, :begun_upstream),
       :attempts, :status, ${listed(tokenColumns, (column) => `:${column}`)}, :usage_source,
       ${listed(pricedColumns, (price) => `coalesce(:${price}, begun.${price}, :begun_${price})`)},
       coalesce(begun.price_request, :begun_price_request), :first_byte_ms, :total_ms, accounts.key_id,
       ${listed(begunColumns, (column) => `coalesce(begun.${column}, :begun_${column})`)},
       coalesce(begun.hold, :begun_hold, 0), :failure${values}
     FROM accounts LEFT JOIN open_requests AS begun ON begun.request_id = :request_id
     WHERE accounts.key_id = ${begunKey}
       AND (begun.hold IS NOT NULL OR :begun_created_at >=
         coalesce((SELECT removed_before FROM record_removals WHERE id = 1), :begun_created_at))
     ON CONFLICT DO NOTHING ${returning(`CASE WHEN late = ${lateness.inTime} THEN hold ELSE 0 END`)}`,
      `UPDATE records SET settlement = :settlement, late = ${lateness.wasLost},
       charge = (SELECT ${chargeable} FROM accounts WHERE key_id = records.key_id),
       unbooked = :charge - (SELECT ${chargeable} FROM accounts WHERE key_id = records.key_id),
       upstream = coalesce(:upstream, upstream), ${listed(pricedColumns, (price) => `${price} = coalesce(:${price}, ${price})`)},
       ${listed([...endedColumns, ...tokenColumns], (column) => `${column} = :${column}`)}
     WHERE request_id = :request_id AND outcome = 'lost' AND settlement IS NULL
     ${returning('coalesce((SELECT hold FROM open_requests WHERE request_id = :request_id), 0)')}`,
    ],
    decided: { key_id: 'text', charge: 'bigint', given_back: 'bigint', late: 'bigint', unbooked: 'bigint' },
    changes: [
      `UPDATE accounts SET held = held - @given_back, balance = balance + @given_back - @charge, spent = spent + @charge,
       postings = postings + CASE WHEN @charge > 0 THEN 1 ELSE 0 END, last_request = NULL, last_hold = NULL
     WHERE key_id = @key_id`,
      `INSERT INTO ledger (key_id, number, created_at, kind, delta, request_id, posting)
     SELECT key_id, postings, CAST(:settled_at AS BIGINT), 'charge', -CAST(@charge AS BIGINT), :request_id, :settlement
     FROM accounts WHERE key_id = @key_id AND @charge > 0`,
      ...budgets.map(({ change }) => change),
      'DELETE FROM open_requests WHERE request_id = :request_id',
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
  record: SettledRecord,
  settlement: string,
  settledAtMs: number,
): readonly SqlValue[] {
  return inOrder(settlementFor(record), namedToSettle(record, settlement, settledAtMs));
}

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
