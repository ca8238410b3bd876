import { budgetIdOf, useOf } from '../domain/budgets/budget.ts';
import type { Budget, BudgetUse } from '../domain/budgets/budget.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { Clock } from '../domain/ports/clock.ts';

/** A key or a group, which may have a budget. */
interface Spender {
  readonly id: string;
  readonly budget: Budget | null;
}

/** Reads what some keys or groups have spent of their budgets in the current periods, by their ids; of those that have one. */
export type ReadBudgetUse = (spenders: readonly Spender[]) => Promise<ReadonlyMap<string, BudgetUse>>;

export function createBudgetUse(
  store: Pick<Accounts, 'budgetPeriods'>,
  clock: Pick<Clock, 'now'>,
): ReadBudgetUse {
  return async (spenders) => {
    const limited = spenders.flatMap(({ id, budget }) =>
      budget === null ? [] : [{ spenderId: id, budget, id: budgetIdOf(id, budget) }],
    );
    if (limited.length === 0) return new Map();
    const stored = await store.budgetPeriods(limited.map(({ id }) => id));
    const nowMs = clock.now();
    return new Map(
      limited.map(({ spenderId, budget, id }) => [spenderId, useOf(budget, stored.get(id), nowMs)]),
    );
  };
}
