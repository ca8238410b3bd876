import { withoutAbsent } from '../../shared/override.ts';
import type { Budget, BudgetChanges } from '../budgets/budget.ts';
import { defaultWeight } from './api-key.ts';
import type { ApiKey, KeyChanges } from './api-key.ts';

/** What the terms are that are values of their own, where a key has none set; everything else in a change is a limit. */
const unsetTerms = {
  models: null,
  allowFrom: null,
  tags: [],
  expiresAt: null,
  lowBalanceNanos: null,
  group: null,
  weight: defaultWeight,
  joinRetriesMs: null,
} as const satisfies Partial<ApiKey>;

/**
 * A key with a change of its settings. Of a budget and of compatibility settings only what is named changes; a key without a
 * budget gets one from a change with an amount and a period alone.
 */
export function changeKey(key: ApiKey, changes: KeyChanges): ApiKey {
  const { name = key.name, budget, compatibility, ...others } = withoutAbsent(changes);
  const limits: Record<string, unknown> = { ...key.limits };
  const terms: Record<string, unknown> = {};
  for (const [setting, value] of Object.entries(others))
    if (Object.hasOwn(unsetTerms, setting))
      terms[setting] = value ?? unsetTerms[setting as keyof typeof unsetTerms];
    else if (value === null) delete limits[setting];
    else limits[setting] = value;
  return {
    ...key,
    ...terms,
    name,
    limits,
    compatibility: { ...key.compatibility, ...compatibility },
    budget: budget === undefined ? key.budget : changeBudget(key.budget, budget),
  };
}

function changeBudget(before: Budget | null, changes: BudgetChanges | null): Budget | null {
  if (changes === null) return null;
  if (before !== null) return { ...before, ...withoutAbsent(changes) };
  const { amountNanos, per, ...others } = changes;
  if (amountNanos === undefined || per === undefined) return null;
  return { amountNanos, per, timeZone: 'UTC', warnAt: [], raise: null, ...withoutAbsent(others) };
}
