import type { BudgetUse } from '../../domain/budgets/budget.ts';
import type { Group } from '../../domain/limits/groups.ts';
import { presentBudget } from './budget.ts';
import type { PresentedGroup } from './managed-key.ts';

/** What the keys of a group do and have spent together. */
interface GroupUse {
  readonly budget: BudgetUse | undefined;
  readonly inFlight: number | undefined;
}

/** A group as JSON. */
export function presentGroup(
  { name, concurrency }: Group,
  { budget, inFlight = 0 }: GroupUse,
): PresentedGroup {
  return {
    name,
    concurrency,
    budget: budget === undefined ? null : presentBudget(budget),
    in_flight: inFlight,
  };
}
