import type { Budget, BudgetChanges } from '../../domain/budgets/budget.ts';
import type { Row, SqlValue } from '../engine.ts';

/** The settings of a budget as a key's row has them: one flat object, so that a change of some leaves the others as they are. */
interface StoredBudget {
  readonly amount: number;
  readonly per: Budget['per'];
  readonly timeZone: string;
  readonly warnAt: readonly number[];
  readonly raise?: number;
  readonly raiseUntil?: number;
}

export function writeBudget(budget: Budget): string {
  return JSON.stringify(patchOf(budget));
}

/**
 * Writes the change of a budget, as an assignment with its value. One that has all settings may follow none; any other leaves
 * a key without a budget as it is, since the budget may have been removed since it was read.
 */
export function changeBudget(changes: BudgetChanges | null): readonly [assignment: string, value: SqlValue] {
  if (changes === null) return ['budget = ?', null];
  const isWhole = changes.amountNanos !== undefined && changes.per !== undefined;
  const before = isWhole ? `coalesce(budget, '{"timeZone":"UTC","warnAt":[]}')` : 'budget';
  return [`budget = json_patch(${before}, ?)`, JSON.stringify(patchOf(changes))];
}

/** A change as a patch of the stored object, in which `null` removes a setting. */
function patchOf({ amountNanos: amount, per, timeZone, warnAt, raise }: BudgetChanges): object {
  const raised =
    raise === undefined ? {} : { raise: raise?.nanos ?? null, raiseUntil: raise?.untilMs ?? null };
  return { amount, per, timeZone, warnAt, ...raised };
}

export function readBudget(stored: Row[string] | undefined): Budget | null {
  if (stored === null || stored === undefined) return null;
  const { amount, per, timeZone, warnAt, raise, raiseUntil } = JSON.parse(String(stored)) as StoredBudget;
  const isRaised = typeof raise === 'number' && typeof raiseUntil === 'number';
  return {
    amountNanos: amount,
    per,
    timeZone,
    warnAt,
    raise: isRaised ? { nanos: raise, untilMs: raiseUntil } : null,
  };
}
