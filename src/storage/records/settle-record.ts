import type { BudgetOwner, CountedBudget } from '../../domain/budgets/budget.ts';
import type { SettledRecord } from '../../domain/money/consumption.ts';
import { maxWarningLevels } from '../../shared/max-warning-levels.ts';
import { maxNanos } from '../../shared/money.ts';
import { takeValues, typesOf } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue, Statement, Taken } from '../engine.ts';
import { sql } from '../statements.ts';
import { beginning, budgetColumns } from './open-record.ts';
import { writeAttempts, writeFailure } from './record-pages.ts';

/** The columns of a record whose values are its usage, and the prices that a settlement may set anew. */
const tokens: Taken<SettledRecord> = [
  ['input_tokens', 'bigint', ({ usage }) => usage?.inputTokens ?? null],
  ['cached_input_tokens', 'bigint', ({ usage }) => usage?.cachedInputTokens ?? null],
  ['cache_write_tokens', 'bigint', ({ usage }) => usage?.cacheWriteTokens ?? null],
  ['output_tokens', 'bigint', ({ usage }) => usage?.outputTokens ?? null],
  ['reasoning_tokens', 'bigint', ({ usage }) => usage?.reasoningTokens ?? null],
];
const prices: Taken<SettledRecord> = [
  ['price_input', 'bigint', ({ price }) => price?.input ?? null],
  ['price_cached_input', 'bigint', ({ price }) => price?.cachedInput ?? null],
  ['price_cache_write', 'bigint', ({ price }) => price?.cacheWrite ?? null],
  ['price_output', 'bigint', ({ price }) => price?.output ?? null],
];

/** What a settlement takes of a record. How that was begun is for one whose beginning is nowhere. */
const settled: Taken<SettledRecord> = [
  ['outcome', 'text', ({ outcome }) => outcome],
  ['upstream', 'text', ({ upstream }) => upstream],
  ['attempts', 'text', ({ attempts }) => writeAttempts(attempts)],
  ['status', 'bigint', ({ status }) => status],
  ...tokens,
  ['usage_source', 'text', ({ usageSource }) => usageSource],
  ...prices,
  ['first_byte_ms', 'bigint', ({ firstTextMs }) => (firstTextMs === null ? null : Math.round(firstTextMs))],
  ['total_ms', 'bigint', ({ totalMs }) => Math.round(totalMs)],
  ['failure', 'text', ({ failure }) => writeFailure(failure)],
  ['begun_key_id', 'text', ({ begun }) => begun?.keyId ?? null],
  ...beginning.map(
    ([name, type, read]) =>
      [`begun_${name}`, type, ({ begun }: SettledRecord) => begun && read(begun)] as const,
  ),
  ['begun_hold', 'bigint', ({ begun }) => begun?.holdNanos ?? null],
];

/** Columns of a record: its tokens, its prices, what only its beginning says, and how it ended. */
const tokenColumns = tokens.map(([name]) => name);
const pricedColumns = prices.map(([name]) => name);
const begunColumns = beginning
  .map(([name]) => name)
  .filter((name) => name !== 'upstream' && !name.startsWith('price_'));
const endedColumns = [
  'outcome',
  'attempts',
  'status',
  'failure',
  'first_byte_ms',
  'total_ms',
  'usage_source',
  ...tokenColumns,
];

/** The warning levels of a budget, by their place. */
const levels = Array.from({ length: maxWarningLevels }, (_, at) => at);

/** What a settlement takes of a budget in which its request counts. No sum reaches a level that is null. */
const counted = (owner: BudgetOwner): Taken<CountedBudget> => [
  [`${owner}_budget`, 'text', ({ id }) => id],
  [`${owner}_start`, 'bigint', ({ startMs }) => startMs],
  [`${owner}_end`, 'bigint', ({ endMs }) => endMs],
  [`${owner}_hold`, 'bigint', ({ holdNanos }) => holdNanos],
  [`${owner}_limit`, 'bigint', ({ limitNanos }) => limitNanos],
  ...levels.flatMap((level): Taken<CountedBudget> => [
    [`${owner}_level_${level}_part`, 'bigint', (budget) => budget.levels[level]?.part ?? null],
    [`${owner}_level_${level}_sum`, 'bigint', (budget) => budget.levels[level]?.nanos ?? null],
  ]),
];

/** The same of the budgets that a request may have. */
const counts = { key: counted('key'), group: counted('group') };

/** What the request still holds in each of its budgets. */
const heldHold = 'coalesce((SELECT budget_hold FROM open_requests WHERE request_id = :request_id), 0)';

/** What is spent in a period with a further charge. */
const sumThen = '(budgets.spent + excluded.spent)';

/**
 * Counts a charge in the period in which its request began: one that is over has left the row, and the charge is not counted
 * in the next one. Where the database has forgotten that the period began, it begins with this charge. The level only rises
 * within a period, also when the amount is raised meanwhile. `at` is how many budgets come before this one.
 */
function settlingIn(owner: BudgetOwner, at: number) {
  const levelOf = (sum: string): string => {
    const cases = levels.map(
      (level) => `WHEN ${sum} >= :${owner}_level_${level}_sum THEN :${owner}_level_${level}_part`,
    );
    return `CASE ${cases.toReversed().join(' ')} ELSE 0 END`;
  };
  const columns = budgetColumns[owner];
  return {
    /** Further columns of the record, and their values. */
    columns: `, ${columns.id}, ${columns.period}${at === 0 ? ', budget_hold' : ''}`,
    values: `, :${owner}_budget, :${owner}_start${at === 0 ? `, coalesce(begun.budget_hold, :${owner}_hold)` : ''}`,
    change: `INSERT INTO budgets (id, period_start, period_end, spent, held, amount, level)
     VALUES (:${owner}_budget, :${owner}_start, :${owner}_end, @charge, 0, :${owner}_limit, ${levelOf('CAST(@charge AS BIGINT)')})
     ON CONFLICT (id) DO UPDATE SET
       spent = CASE WHEN budgets.period_start < :${owner}_start THEN 0 ELSE budgets.spent END + excluded.spent,
       held = CASE WHEN budgets.period_start < :${owner}_start THEN 0 ELSE budgets.held - ${heldHold} END,
       amount = excluded.amount,
       level = CASE WHEN budgets.period_start < :${owner}_start THEN excluded.level
         WHEN budgets.level < ${levelOf(sumThen)} THEN ${levelOf(sumThen)} ELSE budgets.level END,
       period_start = excluded.period_start, period_end = excluded.period_end
     WHERE budgets.period_start <= :${owner}_start`,
  };
}

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
    takes: {
      request_id: 'text',
      settlement: 'text',
      charge: 'bigint',
      settled_at: 'bigint',
      ...typesOf(settled),
      ...typesOf(owners.flatMap((owner) => counts[owner])),
    },
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
       ${listed(endedColumns, (column) => `${column} = :${column}`)}
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
  return [
    record.requestId,
    settlement,
    record.chargeNanos,
    settledAtMs,
    ...takeValues(settled, record),
    ...(record.begun?.budgets ?? []).flatMap((budget) => takeValues(counts[budget.owner], budget)),
  ];
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
  return sql`SELECT count(*) AS count FROM records WHERE request_id = ${requestId} AND outcome = ${outcome} AND charge + unbooked = ${chargeNanos}`;
}
