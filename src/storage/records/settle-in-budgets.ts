import type { BudgetOwner, CountedBudget } from '../../domain/budgets/budget.ts';
import { maxWarningLevels } from '../../shared/max-warning-levels.ts';
import type { FixedUnit, NamedValues } from '../engine.ts';
import { budgetColumns } from './budget-columns.ts';

/** What a settlement does beside, for a budget in which the request counts. */
interface BudgetSettlement {
  readonly types: FixedUnit['takes'];
  /** Further columns of the record, and their values. */
  readonly columns: string;
  readonly values: string;
  readonly change: string;
}

/** The warning levels of a budget, by their place. */
const levels = Array.from({ length: maxWarningLevels }, (_, at) => at);

/** The types of the values of a budget. */
const typesOf = (owner: BudgetOwner): FixedUnit['takes'] => ({
  [`${owner}_budget`]: 'text',
  ...Object.fromEntries(
    [
      'start',
      'end',
      'hold',
      'limit',
      ...levels.flatMap((level) => [`level_${level}_part`, `level_${level}_sum`]),
    ].map((name) => [`${owner}_${name}`, 'bigint']),
  ),
});

/** What the request still holds in each of its budgets. */
const heldHold = 'coalesce((SELECT budget_hold FROM open_requests WHERE request_id = :request_id), 0)';

/** What is spent in a period with a further charge. */
const sumThen = '(budgets.spent + excluded.spent)';

/**
 * Counts a charge in the period in which its request began: one that is over has left the row, and the charge is not counted
 * in the next one. Where the database has forgotten that the period began, it begins with this charge. The level only rises
 * within a period, also when the amount is raised meanwhile. `at` is how many budgets come before this one.
 */
export function settlingIn(owner: BudgetOwner, at: number): BudgetSettlement {
  const levelOf = (sum: string): string => {
    const cases = levels.map(
      (level) => `WHEN ${sum} >= :${owner}_level_${level}_sum THEN :${owner}_level_${level}_part`,
    );
    return `CASE ${cases.toReversed().join(' ')} ELSE 0 END`;
  };
  const columns = budgetColumns[owner];
  return {
    types: typesOf(owner),
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

/** The values of a budget in a settlement. */
export function valuesOfBudget({ owner, ...budget }: CountedBudget): NamedValues {
  return {
    [`${owner}_budget`]: budget.id,
    [`${owner}_start`]: budget.startMs,
    [`${owner}_end`]: budget.endMs,
    [`${owner}_hold`]: budget.holdNanos,
    [`${owner}_limit`]: budget.limitNanos,
    // No sum reaches a level that is null.
    ...Object.fromEntries(
      levels.flatMap((level) => [
        [`${owner}_level_${level}_part`, budget.levels[level]?.part ?? null],
        [`${owner}_level_${level}_sum`, budget.levels[level]?.nanos ?? null],
      ]),
    ),
  };
}
