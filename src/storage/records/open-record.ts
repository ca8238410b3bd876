import type { BudgetTerms, BudgetOwner, StoredPeriod } from '../../domain/budgets/budget.ts';
import { groupNameOf } from '../../domain/limits/groups.ts';
import type { OpenedRecord, Reservation } from '../../domain/money/consumption.ts';
import { takeValues, typesOf } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue, Taken } from '../engine.ts';
import { kindIsKnown } from './record-kinds.ts';
import { isThisRequest, requestKey } from './request-key.ts';

/** What an opening takes of a record, with the number of its kind: its key, what it asks to hold, and how it begins. */
interface Opening extends OpenedRecord {
  readonly kind: number;
}

const opened: Taken<Opening> = [
  ['key_id', 'text', ({ keyId }) => keyId],
  ...requestKey,
  ['hold', 'bigint', ({ hold }) => hold.nanos],
  ['least_hold', 'bigint', ({ hold }) => hold.leastNanos],
  ['kind', 'bigint', ({ kind }) => kind],
  ['queued_ms', 'bigint', ({ queuedMs }) => Math.round(queuedMs)],
];

/** As much of a wanted hold as the balance has; nothing where there is no balance, or one below zero. */
const holdable =
  '(CASE WHEN balance IS NULL OR balance < 0 THEN 0 WHEN balance < :hold THEN balance ELSE :hold END)';

/** The columns of an open request but for what it holds, and their values. */
const openColumns = 'owner, created_at, tail, account, kind, queued_ms';
const openValues = ':owner, CAST(:created_at AS BIGINT), unhex(:tail), @account, :kind, :queued_ms';

/**
 * Begins a record and sets its hold aside. One update decides: it returns a hold if there is enough. Otherwise the account
 * is read as it is, without a hold, and no open request is written. A request that has begun is no refused one, also when
 * its hold was the last of the balance: to begin it again is an error.
 */
export const openRecord: FixedUnit<'open_record'> = {
  name: 'open_record',
  takes: { owner: 'text', ...typesOf(opened) },
  spreadBy: 'key_id',
  mayBeForgotten: true,
  locks: [],
  preparations: [],
  decisions: [
    `UPDATE accounts SET last_request = unhex(:tail), last_hold = ${holdable}, held = held + ${holdable},
       balance = balance - ${holdable}
     WHERE key_id = :key_id AND (balance IS NULL OR balance >= :least_hold OR CAST(:hold AS BIGINT) = 0) AND ${kindIsKnown}
     RETURNING balance, held, last_hold, number`,
    `SELECT balance, held, CASE WHEN last_request = unhex(:tail) THEN last_hold END, number FROM accounts
     WHERE key_id = :key_id AND ${kindIsKnown}`,
  ],
  decided: { balance: 'bigint', held: 'bigint', hold: 'bigint', account: 'bigint' },
  changes: [
    `INSERT INTO open_rows (${openColumns}, hold)
     SELECT ${openValues}, CAST(@hold AS BIGINT)
     WHERE CAST(@hold AS BIGINT) IS NOT NULL`,
  ],
  columns: ['balance', 'held', 'hold'],
  undo: `UPDATE accounts SET last_request = NULL, last_hold = NULL, held = held - @hold, balance = balance + @hold
     WHERE key_id = :key_id AND CAST(@hold AS BIGINT) IS NOT NULL`,
};

/** What `openRecord` did, from its row. */
function readReservation(row: ResultRow): Reservation {
  const [balance = null, held = null, hold = null] = row ?? [];
  const balanceNanos = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: balanceNanos ?? 0, heldNanos: Number(held ?? 0) };
  return { granted: true, holdNanos: balanceNanos === null ? null : Number(hold), balanceNanos };
}

/** Where a request has the name and the period of a budget in which it counts. What it holds there is the same in both. */
interface BudgetColumns {
  readonly id: string;
  readonly period: string;
}

/** The columns of the budget of a key, and of that of its group. */
export const budgetColumns: Readonly<Record<BudgetOwner, BudgetColumns>> = {
  key: { id: 'budget', period: 'budget_period' },
  group: { id: 'group_budget', period: 'group_period' },
};

/** The columns in which the requests are that count in a budget. */
export function columnsOfBudget(id: string): BudgetColumns {
  return budgetColumns[groupNameOf(id) === null ? 'key' : 'group'];
}

/** What an opening takes of a budget. */
const terms = (owner: BudgetOwner): Taken<BudgetTerms> => [
  [`${owner}_budget`, 'text', ({ id }) => id],
  [`${owner}_start`, 'bigint', ({ startMs }) => startMs],
  [`${owner}_end`, 'bigint', ({ endMs }) => endMs],
  [`${owner}_limit`, 'bigint', ({ limitNanos }) => limitNanos],
];

/** The same of the budgets that a request may have. */
const allTerms = { key: terms('key'), group: terms('group') };

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
    takes: { ...openRecord.takes, ...typesOf(owners.flatMap((owner) => allTerms[owner])) },
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
       CASE WHEN EXISTS (SELECT 1 FROM open_rows WHERE ${isThisRequest}) OR CAST(:hold AS BIGINT) = 0 THEN 0
         WHEN room < :least_hold THEN NULL WHEN room < :hold THEN room ELSE CAST(:hold AS BIGINT) END AS hold, account
     FROM (SELECT balance, accounts.held AS held, accounts.number AS account, ${periods.join(', ')},
         ${['balance', ...owners.map(roomOf)].reduceRight((least, room) => smaller(room, least))} AS room
       FROM accounts ${owners.map((owner) => `JOIN budgets AS of_${owner} ON of_${owner}.id = :${owner}_budget`).join(' ')}
       WHERE accounts.key_id = :key_id AND ${kindIsKnown}) AS rooms`,
    ],
    decided: Object.fromEntries(
      ['balance', 'held', ...decidedPeriods, 'hold', 'account'].map((column) => [column, 'bigint']),
    ),
    changes: [
      `UPDATE accounts SET held = held + CAST(@hold AS BIGINT), balance = balance - CAST(@hold AS BIGINT)
     WHERE key_id = :key_id AND balance IS NOT NULL AND CAST(@hold AS BIGINT) IS NOT NULL`,
      ...owners.map(
        (owner) => `UPDATE budgets SET held = held + CAST(@hold AS BIGINT)
     WHERE id = :${owner}_budget AND CAST(@hold AS BIGINT) IS NOT NULL`,
      ),
      `INSERT INTO open_rows (${openColumns}, hold, budget_hold${written.join('')})
     SELECT ${openValues},
       CASE WHEN CAST(@balance AS BIGINT) IS NULL THEN 0 ELSE CAST(@hold AS BIGINT) END,
       CAST(@hold AS BIGINT)${begun.join('')}
     WHERE CAST(@hold AS BIGINT) IS NOT NULL`,
    ],
    columns: ['balance', 'held', 'hold', ...decidedPeriods],
  };
}

/** The units that begin a record with budgets: with that of its key, that of the key's group, or both. */
export const openingUnits = {
  open_budgeted: openingIn('open_budgeted', ['key']),
  open_grouped: openingIn('open_grouped', ['group']),
  open_both: openingIn('open_both', ['key', 'group']),
};

/** A unit with its values. */
export interface UnitCall {
  readonly unit: FixedUnit;
  readonly values: readonly SqlValue[];
}

/** How a record of a kind is begun under an owner, in its budgets: they come in the order of `budgetOwners`. */
export function openingOf(record: OpenedRecord, kind: number, owner: string): UnitCall {
  const { budgets } = record;
  const values = [owner, ...takeValues(opened, { ...record, kind })];
  if (budgets === undefined) return { unit: openRecord, values };
  for (const budget of budgets) values.push(...takeValues(allTerms[budget.owner], budget));
  return { unit: unitFor(budgets), values };
}

/** The unit that begins a record in some budgets, one or both of those that a request may have. */
function unitFor(budgets: readonly BudgetTerms[]): FixedUnit {
  if (budgets.length > 1) return openingUnits.open_both;
  return budgets[0]?.owner === 'group' ? openingUnits.open_grouped : openingUnits.open_budgeted;
}

/** What the beginning of a record did, from the row of its unit. */
export function readOpening({ budgets }: OpenedRecord, row: ResultRow): Reservation {
  return budgets === undefined ? readReservation(row) : readBudgetedReservation(row);
}

/** What the unit did, from its row; a key that is not there has nothing to spend. */
function readBudgetedReservation(row: ResultRow): Reservation {
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
