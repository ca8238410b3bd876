import { budgetOwners } from '../../domain/budgets/budget.ts';
import type { BudgetOwner } from '../../domain/budgets/budget.ts';
import { placesOf } from '../engine.ts';
import type { Row, Statement } from '../engine.ts';
import { budgetColumns } from './budget-columns.ts';
import { hasNoLease } from '../leases/lease-statements.ts';

/**
 * The open requests that one owner may close: those of others without a lease, and its own that were begun before a
 * time or after another one, whether it has its lease or not.
 */
export function selectClosable(owner: string, ownBeforeMs: number, ownAfterMs: number): Statement {
  return {
    sql: `SELECT request_id FROM open_requests
          WHERE (owner = ? AND (created_at < ? OR created_at > ?)) OR (owner <> ? AND ${hasNoLease})`,
    values: [owner, ownBeforeMs, ownAfterMs, owner],
  };
}

/** Closes as lost the open requests whose owners have no lease. */
export function closeWithoutLease(): readonly Statement[] {
  return closeAsLost(hasNoLease, []);
}

/** Closes as lost those of some requests that are open and that one owner may close. */
export function closeOpen(requestIds: readonly string[], owner: string): readonly Statement[] {
  const places = placesOf(requestIds);
  // Asked again, because an owner may have renewed its lease since its requests were listed.
  return closeAsLost(`(owner = ? OR ${hasNoLease}) AND request_id IN (${places})`, [owner, ...requestIds]);
}

/** The owner of the requests that a unit is closing: no process has such an id. */
const closing = `'closing'`;

/**
 * Closes open requests under a condition: their holds go back, and nothing is charged. Their records get no settlement,
 * so that a true one may still overtake the closing. The accounts are locked first, like that of every money unit. Then
 * the requests are marked: what the condition finds may become another set while the unit runs, where others run beside it.
 * One that is marked without a lock of its account may meet its own settlement in a deadlock, which undoes one of the two.
 */
function closeAsLost(condition: string, values: Statement['values']): readonly Statement[] {
  return [
    {
      sql: `UPDATE accounts SET held = held WHERE key_id IN (SELECT key_id FROM open_requests WHERE ${condition})`,
      values,
    },
    { sql: `UPDATE open_requests SET owner = ${closing} WHERE ${condition}`, values },
    {
      sql: `UPDATE accounts SET held = accounts.held - closed.hold, balance = accounts.balance + closed.hold,
              last_request = NULL, last_hold = NULL
            FROM (SELECT key_id, sum(hold) AS hold FROM open_requests WHERE owner = ${closing} GROUP BY key_id) AS closed
            WHERE accounts.key_id = closed.key_id`,
      values: [],
    },
    {
      // A settlement that overtook the beginning has written the record already.
      sql: `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, price_input,
              price_cached_input, price_cache_write, price_output, price_request, tag, group_name, hold, budget,
              budget_period, budget_hold, group_budget, group_period, outcome, status, usage_source)
            SELECT request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, price_input,
              price_cached_input, price_cache_write, price_output, price_request, tag, group_name, hold, budget,
              budget_period, budget_hold, group_budget, group_period, 'lost', 500, 'none'
            FROM open_requests WHERE owner = ${closing} ON CONFLICT (request_id) DO NOTHING`,
      values: [],
    },
    ...budgetOwners.map(giveBackIn),
    { sql: `DELETE FROM open_requests WHERE owner = ${closing} RETURNING request_id`, values: [] },
  ];
}

/**
 * Gives back what the requests hold in the budgets of their keys or groups: behind their records, since a settlement, too,
 * writes its record first, and sums of a day that several keys share may be changed with that.
 */
function giveBackIn(owner: BudgetOwner): Statement {
  const { id, period } = budgetColumns[owner];
  return {
    sql: `UPDATE budgets SET held = budgets.held - closed.hold
          FROM (SELECT ${id} AS id, ${period} AS period, sum(budget_hold) AS hold FROM open_requests
            WHERE owner = ${closing} AND ${id} IS NOT NULL GROUP BY ${id}, ${period}) AS closed
          WHERE budgets.id = closed.id AND budgets.period_start = closed.period`,
    values: [],
  };
}

/** The number of requests that a closing unit closed. */
export function readClosed(results: readonly (readonly Row[])[]): number {
  return results.at(-1)?.length ?? 0;
}
