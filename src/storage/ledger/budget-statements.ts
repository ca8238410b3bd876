import type { StoredPeriod } from '../../domain/budgets/budget.ts';
import { placesOf } from '../engine.ts';
import type { Row, Statement } from '../engine.ts';

export function selectBudgets(ids: readonly string[]): Statement {
  return {
    sql: `SELECT id, period_start, period_end, spent, held, level FROM budgets WHERE id IN (${placesOf(ids)})`,
    values: ids,
  };
}

/** Counts the budgets that have reached a warning level in the period of a time. */
export function countWarnedBudgets(atMs: number): Statement {
  return { sql: 'SELECT count(*) AS count FROM budgets WHERE level > 0 AND period_end > ?', values: [atMs] };
}

export function readPeriod(row: Row): StoredPeriod {
  return {
    startMs: Number(row['period_start']),
    endMs: Number(row['period_end']),
    spentNanos: Number(row['spent']),
    heldNanos: Number(row['held']),
    level: Number(row['level']),
  };
}
