import { budgetIdOf, useOf } from '../domain/budgets/budget.ts';
import type { Budget, BudgetUse } from '../domain/budgets/budget.ts';
import { isUsable } from '../domain/keys/api-key.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyStore } from '../domain/ports/key-store.ts';
import type { RefusedByLimit, Refusals } from '../domain/ports/refusals.ts';
import { dayOf } from '../shared/duration.ts';

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

/** Reads how many requests of some keys this gateway's limits have refused today, in UTC, by the keys' ids. */
export type ReadRefused = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, RefusedByLimit>>;

export function createReadRefused(refusals: Pick<Refusals, 'ofDay'>, clock: Pick<Clock, 'now'>): ReadRefused {
  return (keyIds) => refusals.ofDay(keyIds, dayOf(clock.now()));
}

/** How many keys are read at a time. */
const pageSize = 500;

/** Whether any stored key can be used at a time, in milliseconds since 1970. Rejects when the database can't be read. */
export async function hasActiveKey(store: Pick<KeyStore, 'listKeys'>, nowMs: number): Promise<boolean> {
  let before: string | null = null;
  do {
    const page = await store.listKeys({}, pageSize, before);
    if (page?.keys.some((key) => isUsable(key, nowMs))) return true;
    before = page?.next ?? null;
  } while (before !== null);
  return false;
}
