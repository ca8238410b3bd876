import { groupNameOf } from '../../domain/limits/groups.ts';
import type { BudgetOwner } from '../../domain/budgets/budget.ts';

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
