import type { BudgetOwner, CountedBudget } from '../../domain/budgets/budget.ts';
import type { Attempt, SettledRecord } from '../../domain/money/consumption.ts';
import { maxWarningLevels } from '../../shared/max-warning-levels.ts';
import { maxNanos } from '../../shared/money.ts';
import { claimChanges, endedClaim, isClaimOfRequest } from '../claims.ts';
import { takeValues, typesOf } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue, Statement, Taken } from '../engine.ts';
import { sql } from '../statements.ts';
import { budgetColumns } from './open-record.ts';
import { kindIsKnown } from './record-kinds.ts';
import { isRequest, isThisRequest, requestKey, requestKeyOf } from './request-key.ts';
import { writeAttempts, writeFailure } from './stored-attempts.ts';

/** A record that is settled, with what its row needs beside it. */
interface Settlement extends SettledRecord {
  readonly kind: number;
  readonly settledAtMs: number;
  /** Its one attempt, where its columns say all of that; else its attempts are written. */
  readonly described: Attempt | null;
  /** Whether it was begun in memory, and may be nowhere else. */
  readonly isUnwritten: boolean;
}

/** What a settlement takes of its end, under the names of the columns. */
const ended: Taken<Settlement> = [
  ['kind', 'bigint', ({ kind }) => kind],
  ['input_tokens', 'bigint', ({ usage }) => usage?.inputTokens ?? null],
  ['cached_input_tokens', 'bigint', ({ usage }) => usage?.cachedInputTokens || null],
  ['cache_write_tokens', 'bigint', ({ usage }) => usage?.cacheWriteTokens || null],
  ['output_tokens', 'bigint', ({ usage }) => usage?.outputTokens ?? null],
  ['reasoning_tokens', 'bigint', ({ usage }) => usage?.reasoningTokens || null],
  ['first_byte_ms', 'bigint', ({ firstTextMs }) => (firstTextMs === null ? null : Math.round(firstTextMs))],
  ['total_ms', 'bigint', ({ totalMs }) => Math.round(totalMs)],
  ['attempts', 'text', ({ attempts, described }) => (described === null ? writeAttempts(attempts) : null)],
  ['attempt_started_ms', 'bigint', ({ described }) => described?.startedMs ?? null],
  ['attempt_ms', 'bigint', ({ described }) => described?.durationMs ?? null],
  ['failure', 'text', ({ failure }) => writeFailure(failure)],
];
const endedColumns = ended.map(([name]) => name);

/** What it takes beside that. How the record was begun is for one whose beginning is nowhere. */
const settled: Taken<Settlement> = [
  ...requestKey,
  ['key_id', 'text', ({ begun }) => begun.keyId],
  ['charge', 'bigint', ({ chargeNanos }) => chargeNanos],
  ['settled_at', 'bigint', ({ settledAtMs }) => settledAtMs],
  ...ended,
  ['queued_ms', 'bigint', ({ begun }) => Math.round(begun.queuedMs)],
  ['hold', 'bigint', ({ begun }) => begun.holdNanos],
  ['unwritten', 'bigint', ({ isUnwritten }) => (isUnwritten ? 1 : 0)],
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
const heldHold = `coalesce((SELECT budget_hold FROM open_rows WHERE ${isThisRequest}), 0)`;

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

type SettlementName =
  | 'settle_record'
  | 'settle_budgeted'
  | 'settle_grouped'
  | 'settle_both'
  | `settle_claimed${'' | `_${'budgeted' | 'grouped' | 'both'}`}`;

/** How a record's beginning was found, in its column `late`, where that is not as usual. */
const lateness = { wasLost: 1, wasForgotten: 2 } as const;

/** What the row that decides a settlement returns, in the order of `decided`; `givenBack` is what its request still holds. */
const returning = (givenBack: string): string =>
  `RETURNING charge, ${givenBack} AS given_back, late, unbooked`;

/** The hold of the open request, where it is not known to be that of its record. */
const openHold = `coalesce((SELECT hold FROM open_rows WHERE ${isThisRequest}), 0)`;

const listed = (columns: readonly string[], write: (column: string) => string): string =>
  columns.map(write).join(', ');

/** The number of a charge in the ledger of its key, behind all that are there. */
const chargeNumber = `CASE WHEN ${chargeable} > 0 THEN postings + 1 END`;

/** What a late settlement reads of the account. */
const ofAccount = (value: string): string => `(SELECT ${value} FROM accounts WHERE key_id = :key_id)`;

/**
 * Ends a record, gives its hold back and charges it. What decides is that the record is written: the others happen only then,
 * so a second settlement changes nothing. A record that was closed as lost is overtaken, once: its process was taken for dead,
 * yet its answer went out and has to be paid for. So does one whose beginning is nowhere: a power failure may forget that, and
 * the settlement has all of it, as of one that was begun in memory alone; unless records of its time were removed: then its own
 * may have been among them, and it would be charged twice. No more is charged than the account's sum can take; what is left
 * over is kept as `unbooked`.
 *
 * Only a record that exists already is looked for: on PostgreSQL, what reads or updates records costs a lock of each
 * partition, and an insert without a named column for its conflict the least (nothing else of theirs is unique). The one
 * row of the removals is found by its id: a table that is read whole counts as so expensive in this function that the server
 * would compile the statement first, for half a second.
 *
 * A request with a claim is settled only as long as the claim is its own.
 */
function settlementOf<Name extends SettlementName>(
  name: Name,
  owners: readonly BudgetOwner[],
  hasClaim = false,
): FixedUnit<Name> {
  const ifClaimed = hasClaim ? `AND EXISTS (SELECT 1 FROM claim_rows WHERE ${isClaimOfRequest})` : '';
  const budgets = owners.map(settlingIn);
  const columns = budgets.map((budget) => budget.columns).join('');
  const values = budgets.map((budget) => budget.values).join('');
  return {
    name,
    takes: {
      ...typesOf(settled),
      ...typesOf(hasClaim ? endedClaim : []),
      ...typesOf(owners.flatMap((owner) => counts[owner])),
    },
    spreadBy: 'key_id',
    mayBeForgotten: false,
    locks: [{ table: 'accounts', where: 'key_id = :key_id' }],
    preparations: [],
    decisions: [
      `INSERT INTO record_rows (created_at, tail, account, charge, charge_number, unbooked, settled_ms, late, queued_ms, hold,
       ${endedColumns.join(', ')}${columns})
     SELECT CAST(:created_at AS BIGINT), unhex(:tail), accounts.number, ${chargeable}, ${chargeNumber},
       nullif(:charge - ${chargeable}, 0), CAST(:settled_at AS BIGINT) - :created_at,
       CASE WHEN begun.hold IS NULL AND :unwritten = 0 THEN ${lateness.wasForgotten} END, :queued_ms, coalesce(begun.hold, :hold),
       ${listed(endedColumns, (column) => `:${column}`)}${values}
     FROM accounts LEFT JOIN open_rows AS begun ON begun.created_at = :created_at AND begun.tail = unhex(:tail)
     WHERE accounts.key_id = :key_id AND ${kindIsKnown} ${ifClaimed}
       AND (begun.hold IS NOT NULL OR :unwritten = 1 OR :created_at >=
         coalesce((SELECT removed_before FROM record_removals WHERE id = 1), :created_at))
     ON CONFLICT DO NOTHING ${returning(`CASE WHEN late IS NOT NULL THEN 0 WHEN :unwritten = 0 THEN hold ELSE ${openHold} END`)}`,
      `UPDATE record_rows SET late = ${lateness.wasLost}, settled_ms = CAST(:settled_at AS BIGINT) - :created_at,
       charge = ${ofAccount(chargeable)}, charge_number = ${ofAccount(chargeNumber)},
       unbooked = nullif(:charge - ${ofAccount(chargeable)}, 0),
       ${listed(endedColumns, (column) => `${column} = :${column}`)}
     WHERE ${isThisRequest} AND settled_ms IS NULL AND ${kindIsKnown} ${ifClaimed}
     ${returning(openHold)}`,
    ],
    decided: { charge: 'bigint', given_back: 'bigint', late: 'bigint', unbooked: 'bigint' },
    changes: [
      `UPDATE accounts SET held = held - @given_back, balance = balance + @given_back - @charge, spent = spent + @charge,
       postings = postings + CASE WHEN @charge > 0 THEN 1 ELSE 0 END, last_request = NULL, last_hold = NULL
     WHERE key_id = :key_id`,
      ...budgets.map(({ change }) => change),
      `DELETE FROM open_rows WHERE ${isThisRequest}`,
      ...(hasClaim ? claimChanges : []),
    ],
    columns: ['late', 'unbooked'],
  };
}

/** In which budgets a record may count, by the end of the names of the units that settle it. */
const budgetsOf = { budgeted: ['key'], grouped: ['group'], both: ['key', 'group'] } as const;

/** The units that settle a record, by what it counts in: nothing, the budget of its key, that of the group, or both. */
export const settlementUnits = {
  settle_record: settlementOf('settle_record', []),
  settle_budgeted: settlementOf('settle_budgeted', budgetsOf.budgeted),
  settle_grouped: settlementOf('settle_grouped', budgetsOf.grouped),
  settle_both: settlementOf('settle_both', budgetsOf.both),
  settle_claimed: settlementOf('settle_claimed', [], true),
  settle_claimed_budgeted: settlementOf('settle_claimed_budgeted', budgetsOf.budgeted, true),
  settle_claimed_grouped: settlementOf('settle_claimed_grouped', budgetsOf.grouped, true),
  settle_claimed_both: settlementOf('settle_claimed_both', budgetsOf.both, true),
};

/** The unit that settles a record, by how it was begun, and whether it has a claim. */
export function settlementFor({ begun, claim }: Pick<SettledRecord, 'begun' | 'claim'>): FixedUnit {
  const [first, second] = begun.budgets ?? [];
  const units = settlementUnits;
  if (first === undefined) return claim === undefined ? units.settle_record : units.settle_claimed;
  if (second !== undefined) return claim === undefined ? units.settle_both : units.settle_claimed_both;
  if (first.owner === 'group')
    return claim === undefined ? units.settle_grouped : units.settle_claimed_grouped;
  return claim === undefined ? units.settle_budgeted : units.settle_claimed_budgeted;
}

/** The values of `settlementFor`. */
export function valuesToSettle(settlement: Settlement): readonly SqlValue[] {
  const { claim, begun } = settlement;
  return [
    ...takeValues(settled, settlement),
    ...(claim === undefined ? [] : takeValues(endedClaim, claim)),
    ...(begun.budgets ?? []).flatMap((budget) => takeValues(counts[budget.owner], budget)),
  ];
}

/** What a settlement did. */
export interface Settled {
  readonly unbookedNanos: number;
  /** Whether the record was open, closed as lost, or nowhere. */
  readonly found: 'open' | 'lost' | 'nowhere';
  readonly hasFreedSlot: boolean;
}

/** What a settlement did, from its row; `null` when there was nothing to settle. */
export function readSettlement(row: ResultRow): Settled | null {
  if (row === null) return null;
  const [late, unbooked, freed = null] = row;
  const found = late === null ? 'open' : Number(late) === lateness.wasLost ? 'lost' : 'nowhere';
  return { unbookedNanos: Number(unbooked ?? 0), found, hasFreedSlot: freed !== null };
}

/** Counts the settlements that are this one and no other: 1 or 0. */
export function countSettlements({ requestId, outcome, chargeNanos }: SettledRecord): Statement {
  return sql`SELECT count(*) AS count FROM records WHERE ${isRequest(requestKeyOf(requestId))}
    AND outcome = ${outcome} AND charge + unbooked = ${chargeNanos}`;
}
