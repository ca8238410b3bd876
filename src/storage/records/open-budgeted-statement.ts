import type { OpenedRecord, Reservation } from '../../domain/consumption.ts';
import type { BudgetClaim } from '../../domain/budgets/budget.ts';
import { repeated } from '../engine.ts';
import type { FixedUnit, ResultRow, SqlValue } from '../engine.ts';
import { openRecord, valuesToOpen } from './open-statement.ts';

/** What may still be spent in the period; the value is its limit. */
const roomOfBudget = 'CAST(?21 AS BIGINT) - budgets.spent - budgets.held';

/**
 * Begins a record of a key with a budget, and sets its hold aside in the budget, and in the balance where there is one: as much
 * of it as both have room for. The budget's row is locked behind that of the account, and has the period of the request from
 * then on. A period that is over is replaced by a later one alone, so its successor begins once, and a node whose clock is
 * behind counts in the period that is there. Requests of the earlier period hold nothing in the later one.
 *
 * Where there is no room, no open request is written; a request that has begun is begun again, which is an error.
 */
export const openBudgeted: FixedUnit<'open_budgeted'> = {
  name: 'open_budgeted',
  types: [...openRecord.types, 'text', ...repeated('bigint', 3)],
  spreadBy: 1,
  mayBeForgotten: true,
  locks: [{ table: 'accounts', where: 'key_id = ?2' }],
  preparations: [
    `INSERT INTO budgets (id, period_start, period_end) VALUES (?18, ?19, ?20)
     ON CONFLICT (id) DO UPDATE SET period_start = excluded.period_start, period_end = excluded.period_end,
       spent = 0, held = 0, level = 0
     WHERE budgets.period_start < excluded.period_start`,
  ],
  decisions: [
    `SELECT balance, held, period_start, period_end, budget_spent, budget_held, level,
       CASE WHEN EXISTS (SELECT 1 FROM open_requests WHERE request_id = ?3) OR CAST(?4 AS BIGINT) = 0 THEN 0
         WHEN room < ?5 THEN NULL WHEN room < ?4 THEN room ELSE CAST(?4 AS BIGINT) END AS hold
     FROM (SELECT balance, accounts.held AS held, period_start, period_end, budgets.spent AS budget_spent,
         budgets.held AS budget_held, level,
         CASE WHEN balance < ${roomOfBudget} THEN balance ELSE ${roomOfBudget} END AS room
       FROM accounts JOIN budgets ON budgets.id = ?18 WHERE accounts.key_id = ?2) AS rooms`,
  ],
  decided: {
    balance: 'bigint',
    held: 'bigint',
    period_start: 'bigint',
    period_end: 'bigint',
    budget_spent: 'bigint',
    budget_held: 'bigint',
    level: 'bigint',
    hold: 'bigint',
  },
  changes: [
    `UPDATE accounts SET held = held + CAST(:hold AS BIGINT), balance = balance - CAST(:hold AS BIGINT)
     WHERE key_id = ?2 AND balance IS NOT NULL AND CAST(:hold AS BIGINT) IS NOT NULL`,
    `UPDATE budgets SET held = held + CAST(:hold AS BIGINT) WHERE id = ?18 AND CAST(:hold AS BIGINT) IS NOT NULL`,
    `INSERT INTO open_requests (owner, key_id, request_id, created_at, protocol, mode, model, upstream, queued_ms,
       price_input, price_cached_input, price_cache_write, price_output, price_request, tag, hold,
       budget, budget_period, budget_hold)
     SELECT ?1, ?2, ?3, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
       CASE WHEN CAST(:balance AS BIGINT) IS NULL THEN 0 ELSE CAST(:hold AS BIGINT) END,
       ?18, CAST(:period_start AS BIGINT), CAST(:hold AS BIGINT)
     WHERE CAST(:hold AS BIGINT) IS NOT NULL`,
  ],
  columns: ['balance', 'held', 'period_start', 'period_end', 'budget_spent', 'budget_held', 'level', 'hold'],
};

/** The values of `openBudgeted`. */
export function valuesToOpenBudgeted(
  record: OpenedRecord,
  { id, startMs, endMs, limitNanos }: BudgetClaim,
  owner: string,
): readonly SqlValue[] {
  return [...valuesToOpen(record, owner), id, startMs, endMs, limitNanos];
}

/** What `openBudgeted` did, from its row; a key that is not there has nothing to spend. */
export function readBudgetedReservation(row: ResultRow): Reservation {
  if (row === null) return { granted: false, balanceNanos: 0, heldNanos: 0 };
  const [balance = null, held, startMs, endMs, spent, budgetHeld, level, hold = null] = row;
  const period = {
    startMs: Number(startMs),
    endMs: Number(endMs),
    spentNanos: Number(spent),
    heldNanos: Number(budgetHeld),
    level: Number(level),
  };
  const free = balance === null ? null : Number(balance);
  if (hold === null) return { granted: false, balanceNanos: free, heldNanos: Number(held), period };
  const holdNanos = Number(hold);
  return { granted: true, holdNanos, balanceNanos: free === null ? null : free - holdNanos, period };
}
