import type { OpenedRecord, Reservation } from '../../domain/money/consumption.ts';
import type { BudgetClaim, BudgetOwner, StoredPeriod } from '../../domain/budgets/budget.ts';
import { inOrder } from '../engine.ts';
import type { FixedUnit, NamedValues, ResultRow, SqlValue } from '../engine.ts';
import { budgetColumns } from './budget-columns.ts';
import { openColumns, openValues, namedToOpen, openRecord } from './open-statement.ts';

/** The types of the values of a budget: its id, the start and the end of the period, and its limit. */
const typesOf = (owner: BudgetOwner): FixedUnit['takes'] => ({
  [`${owner}_budget`]: 'text',
  [`${owner}_start`]: 'bigint',
  [`${owner}_end`]: 'bigint',
  [`${owner}_limit`]: 'bigint',
});

/** The columns of a budget's row, as the row that decides has them. */
const periodColumns = ['period_start', 'period_end', 'spent', 'held', 'level'] as const;

/** The smaller one of two amounts; the second one where there is no first. */
const smaller = (one: string, other: string): string =>
  `CASE WHEN ${one} < ${other} THEN ${one} ELSE ${other} END`;

/** What may still be spent in the period of a budget. */
const roomOf = (owner: BudgetOwner): string =>
  `CAST(:${owner}_limit AS BIGINT) - of_${owner}.spent - of_${owner}.held`;

/**
 * Begins a record that counts in budgets, and sets its hold aside in each of them, and in the balance where there is one: as
 * much of it as all have room for. The rows of the budgets are locked behind that of the account, that of the group last, and
 * have the period of the request from then on. A period that is over is replaced by a later one alone, so its successor begins
 * once, and a node whose clock is behind counts in the period that is there. Requests of the earlier period hold nothing in
 * the later one.
 *
 * Where there is no room, no open request is written; a request that has begun is begun again, which is an error.
 */
function openingIn<Name extends 'open_budgeted' | 'open_grouped' | 'open_both'>(
  name: Name,
  owners: readonly BudgetOwner[],
): FixedUnit<Name> {
  const decidedPeriods = owners.flatMap((owner) => periodColumns.map((column) => `${owner}_${column}`));
  const periods = owners.flatMap((owner) =>
    periodColumns.map((column) => `of_${owner}.${column} AS ${owner}_${column}`),
  );
  const written = owners.map((owner) => `, ${budgetColumns[owner].id}, ${budgetColumns[owner].period}`);
  const begun = owners.map((owner) => `, :${owner}_budget, CAST(@${owner}_period_start AS BIGINT)`);
  return {
    name,
    takes: Object.assign({}, openRecord.takes, ...owners.map(typesOf)) as FixedUnit['takes'],
    spreadBy: 'key_id',
    mayBeForgotten: true,
    locks: [{ table: 'accounts', where: 'key_id = :key_id' }],
    preparations: owners.map(
      (owner) =>
        `INSERT INTO budgets (id, period_start, period_end) VALUES (:${owner}_budget, :${owner}_start, :${owner}_end)
     ON CONFLICT (id) DO UPDATE SET period_start = excluded.period_start, period_end = excluded.period_end,
       spent = 0, held = 0, level = 0
     WHERE budgets.period_start < excluded.period_start`,
    ),
    decisions: [
      `SELECT balance, held, ${decidedPeriods.join(', ')},
       CASE WHEN EXISTS (SELECT 1 FROM open_requests WHERE request_id = :request_id) OR CAST(:hold AS BIGINT) = 0 THEN 0
         WHEN room < :least_hold THEN NULL WHEN room < :hold THEN room ELSE CAST(:hold AS BIGINT) END AS hold
     FROM (SELECT balance, accounts.held AS held, ${periods.join(', ')},
         ${['balance', ...owners.map(roomOf)].reduceRight((least, room) => smaller(room, least))} AS room
       FROM accounts ${owners.map((owner) => `JOIN budgets AS of_${owner} ON of_${owner}.id = :${owner}_budget`).join(' ')}
       WHERE accounts.key_id = :key_id) AS rooms`,
    ],
    decided: Object.fromEntries(
      ['balance', 'held', ...decidedPeriods, 'hold'].map((column) => [column, 'bigint']),
    ),
    changes: [
      `UPDATE accounts SET held = held + CAST(@hold AS BIGINT), balance = balance - CAST(@hold AS BIGINT)
     WHERE key_id = :key_id AND balance IS NOT NULL AND CAST(@hold AS BIGINT) IS NOT NULL`,
      ...owners.map(
        (owner) => `UPDATE budgets SET held = held + CAST(@hold AS BIGINT)
     WHERE id = :${owner}_budget AND CAST(@hold AS BIGINT) IS NOT NULL`,
      ),
      `INSERT INTO open_requests (${openColumns.join(', ')}, hold, budget_hold${written.join('')})
     SELECT ${openValues},
       CASE WHEN CAST(@balance AS BIGINT) IS NULL THEN 0 ELSE CAST(@hold AS BIGINT) END,
       CAST(@hold AS BIGINT)${begun.join('')}
     WHERE CAST(@hold AS BIGINT) IS NOT NULL`,
    ],
    columns: ['balance', 'held', 'hold', ...decidedPeriods],
  };
}

/** Begins a record of a key with a budget. */
const openBudgeted = openingIn('open_budgeted', ['key']);

/** Begins a record of a key in a group with a budget. */
const openGrouped = openingIn('open_grouped', ['group']);

/** Begins a record that counts in the budget of its key and in that of the key's group. */
const openBoth = openingIn('open_both', ['key', 'group']);

/** The units that begin a record with budgets. */
export const openingUnits = {
  open_budgeted: openBudgeted,
  open_grouped: openGrouped,
  open_both: openBoth,
};

/** The unit that begins a record in some budgets, one or both of those that a request may have. */
export function openingOf(budgets: readonly Pick<BudgetClaim, 'owner'>[]): FixedUnit {
  if (budgets.length > 1) return openBoth;
  return budgets[0]?.owner === 'group' ? openGrouped : openBudgeted;
}

/** The values of `openingOf`. */
export function valuesToOpenBudgeted(
  record: OpenedRecord,
  budgets: readonly BudgetClaim[],
  owner: string,
): readonly SqlValue[] {
  const counted = budgets.map(({ owner: of, id, startMs, endMs, limitNanos }) => ({
    [`${of}_budget`]: id,
    [`${of}_start`]: startMs,
    [`${of}_end`]: endMs,
    [`${of}_limit`]: limitNanos,
  }));
  return inOrder(openingOf(budgets), Object.assign(namedToOpen(record, owner), ...counted) as NamedValues);
}

/** What the unit did, from its row; a key that is not there has nothing to spend. */
export function readBudgetedReservation(row: ResultRow): Reservation {
  if (row === null) return { granted: false, balanceNanos: 0, heldNanos: 0 };
  const [balance = null, held, hold = null, ...stored] = row;
  const periods = readPeriods(stored);
  const free = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: free, heldNanos: Number(held), periods };
  const holdNanos = Number(hold);
  return { granted: true, holdNanos, balanceNanos: free === null ? null : free - holdNanos, periods };
}

function readPeriods(stored: readonly SqlValue[]): readonly StoredPeriod[] {
  return Array.from({ length: stored.length / periodColumns.length }, (_, at) => {
    const [startMs = 0, endMs = 0, spentNanos = 0, heldNanos = 0, level = 0] = stored
      .slice(at * periodColumns.length, (at + 1) * periodColumns.length)
      .map(Number);
    return { startMs, endMs, spentNanos, heldNanos, level };
  });
}
