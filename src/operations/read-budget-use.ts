import { budgetIdOf, useOf } from '../domain/budgets/budget.ts';
import type { BudgetUse } from '../domain/budgets/budget.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { Clock } from '../domain/ports/clock.ts';

/** Reads what some keys have spent of their budgets in the current periods, by the keys' ids; of those that have one. */
export type ReadBudgetUse = (keys: readonly ApiKey[]) => Promise<ReadonlyMap<string, BudgetUse>>;

export function createBudgetUse(
  store: Pick<Accounts, 'budgetPeriods'>,
  clock: Pick<Clock, 'now'>,
): ReadBudgetUse {
  return async (keys) => {
    const limited = keys.flatMap(({ id, budget }) =>
      budget === null ? [] : [{ keyId: id, budget, id: budgetIdOf(id, budget) }],
    );
    if (limited.length === 0) return new Map();
    const stored = await store.budgetPeriods(limited.map(({ id }) => id));
    const nowMs = clock.now();
    return new Map(limited.map(({ keyId, budget, id }) => [keyId, useOf(budget, stored.get(id), nowMs)]));
  };
}
