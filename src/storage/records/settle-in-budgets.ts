import type { BudgetOwner, CountedBudget } from '../../domain/budgets/budget.ts';
import { maxWarningLevels } from '../../shared/max-warning-levels.ts';
import { repeated } from '../engine.ts';
import type { FixedUnit, SqlValue } from '../engine.ts';
import { budgetColumns } from './budget-columns.ts';

/** What a settlement does beside, for a budget in which the request counts. */
interface BudgetSettlement {
  readonly types: FixedUnit['types'];
  /** Further columns of the record, and their values. */
  readonly columns: string;
  readonly values: string;
  readonly change: string;
}

/** The types of the values of a budget, in the order of `valuesOfBudget`. */
const budgetTypes: FixedUnit['types'] = ['text', ...repeated('bigint', 4 + 2 * maxWarningLevels)];

/** What the request still holds in each of its budgets. */
const heldHold = 'coalesce((SELECT budget_hold FROM open_requests WHERE request_id = ?1), 0)';

/** What is spent in a period with a further charge. */
const sumThen = '(budgets.spent + excluded.spent)';

/**
 * Counts a charge in the period in which its request began: one that is over has left the row, and the charge is not counted
 * in the next one. Where the database has forgotten that the period began, it begins with this charge. The level only rises
 * within a period, also when the amount is raised meanwhile. `before` is the number of the settlement's other values, `at`
 * how many budgets come before this one.
 */
export function settlingIn(owner: BudgetOwner, at: number, before: number): BudgetSettlement {
  const place = (value: number): string => `?${before + budgetTypes.length * at + value}`;
  const [id, startMs, endMs, hold, limit] = [1, 2, 3, 4, 5].map(place);
  const levelOf = (sum: string): string => {
    const cases = Array.from({ length: maxWarningLevels }, (_, level) => [6 + 2 * level, 7 + 2 * level])
      .map((places) => places.map(place))
      .map(([part, nanos]) => `WHEN ${sum} >= ${nanos} THEN ${part}`);
    return `CASE ${cases.toReversed().join(' ')} ELSE 0 END`;
  };
  const columns = budgetColumns[owner];
  return {
    types: budgetTypes,
    columns: `, ${columns.id}, ${columns.period}${at === 0 ? ', budget_hold' : ''}`,
    values: `, ${id}, ${startMs}${at === 0 ? `, coalesce(begun.budget_hold, ${hold})` : ''}`,
    change: `INSERT INTO budgets (id, period_start, period_end, spent, held, amount, level)
     VALUES (${id}, ${startMs}, ${endMs}, :charge, 0, ${limit}, ${levelOf('CAST(:charge AS BIGINT)')})
     ON CONFLICT (id) DO UPDATE SET
       spent = CASE WHEN budgets.period_start < ${startMs} THEN 0 ELSE budgets.spent END + excluded.spent,
       held = CASE WHEN budgets.period_start < ${startMs} THEN 0 ELSE budgets.held - ${heldHold} END,
       amount = excluded.amount,
       level = CASE WHEN budgets.period_start < ${startMs} THEN excluded.level
         WHEN budgets.level < ${levelOf(sumThen)} THEN ${levelOf(sumThen)} ELSE budgets.level END,
       period_start = excluded.period_start, period_end = excluded.period_end
     WHERE budgets.period_start <= ${startMs}`,
  };
}

/** The values of a budget in a settlement. */
export function valuesOfBudget(budget: CountedBudget): readonly SqlValue[] {
  const { id, startMs, endMs, holdNanos, limitNanos, levels } = budget;
  // No sum reaches a level that is null.
  const pairs = Array.from({ length: maxWarningLevels }, (_, at) => levels[at]).flatMap((level) => [
    level?.part ?? null,
    level?.nanos ?? null,
  ]);
  return [id, startMs, endMs, holdNanos, limitNanos, ...pairs];
}
