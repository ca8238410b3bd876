import type { presentBudget } from '../../http/present/budget.ts';

type BudgetObject = ReturnType<typeof presentBudget>;

/** The budget of a key or of its group, what is spent of it and what is left, under titles. */
export function budgetRows(budget: BudgetObject | null, title: string, left: string): readonly string[][] {
  if (budget === null) return [[title, 'none set']];
  const { amount, per, time_zone: timeZone, raise, available, spent, refills_at: refillsAt } = budget;
  return [
    [title, `${amount} per ${per} (${timeZone})`],
    ...raiseRows(raise, title),
    [left, `${available}, ${spent} are spent; full again at ${refillsAt}`],
  ];
}

/** A raise that has ended stays with the budget, and would look like one in force. */
function raiseRows(raise: BudgetObject['raise'], title: string): readonly string[][] {
  if (raise === null) return [];
  const { amount, until } = raise;
  return Date.parse(until ?? '') > Date.now()
    ? [[`${title} raised by`, `${amount} until ${until}`]]
    : [[`${title} raise`, `none: that of ${amount} ended at ${until}`]];
}
