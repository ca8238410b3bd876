import { asIso, entriesOf } from './form-texts.ts';
import type { FormValues } from './form-fields.ts';

/** The fields of the form that are a budget together. */
export const budgetNames = [
  'budgetAmount',
  'budgetPer',
  'budgetTimeZone',
  'budgetWarnAt',
  'raiseAmount',
  'raiseUntil',
] as const;

/**
 * The budget as a body has it: a whole one for a key without a budget, the changes for one that has it, and `null` to end it.
 * `undefined`: there is none, and none is wanted.
 */
export function budgetBody(before: FormValues, after: FormValues): object | null | undefined {
  const isEmptied = after.budgetAmount.trim() === '';
  const is = Object.entries(partsOf(after));
  if (before.budgetAmount !== '') {
    const was = new Map<string, unknown>(Object.entries(partsOf(before)));
    if (isEmptied) return null;
    return Object.fromEntries(
      is.filter(([name, part]) => JSON.stringify(part) !== JSON.stringify(was.get(name))),
    );
  }
  // A period alone is no wish for a budget: the form has one from the beginning.
  const isWanted = budgetNames.some((name) => name !== 'budgetPer' && after[name].trim() !== '');
  return isWanted ? Object.fromEntries(is.filter(([, part]) => part !== null && part !== '')) : undefined;
}

/** An emptied time zone is that of a budget without one. */
function partsOf(values: FormValues) {
  const amount = values.raiseAmount.trim();
  const until = asIso(values.raiseUntil);
  return {
    amount: values.budgetAmount.trim(),
    per: values.budgetPer,
    timeZone: values.budgetTimeZone.trim() || 'UTC',
    warnAt: entriesOf(values.budgetWarnAt),
    raise: amount === '' && until === null ? null : { amount, until: until ?? '' },
  };
}
