import { z } from 'zod';
import { budgetForm, splitBudget } from './budget-text.ts';
import { maxWarningLevels } from './max-warning-levels.ts';
import { instant, readBy, usd } from './schema-values.ts';

/** Whether this version of Node knows a time zone by this name. */
function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** The longest name of a time zone that is taken, in characters: those of the IANA database have less than half as many. */
const maxZoneLength = 64;

/** A time zone, such as `Europe/Berlin`. */
const timeZone = z
  .string()
  .max(maxZoneLength)
  .refine(isTimeZone, 'expected a time zone of the IANA database, such as Europe/Berlin, or UTC');

/** Parts of a whole such as `0.8`; a part of 0 would count as reached before anything is spent. */
const warnAt = z
  .array(
    z
      .string()
      .regex(
        /^(?!0?\.0+$)(0?\.\d{1,3}|1(\.0{1,3})?)$/,
        'expected a part of the amount, such as "0.8": from 0.001 to 1, with at most three digits after the point',
      ),
  )
  .max(maxWarningLevels);

const raise = z.strictObject({
  amount: usd.meta({ description: 'USD that are added to the amount.', examples: ['10'] }),
  until: instant.meta({
    description: 'When the raise ends: a time, or a day in UTC.',
    examples: ['2030-01-01T00:00:00Z'],
  }),
});

/** The settings of a budget: a new one needs the amount and the period. */
const budgetSettings = {
  amount: usd.meta({ description: 'USD that may be spent in each period.', examples: ['20'] }),
  per: z
    .enum(['day', 'week', 'month'])
    .meta({ description: 'The period of the calendar; weeks begin on Monday.', examples: ['month'] }),
  timeZone: timeZone.optional().meta({
    description: 'The time zone of the calendar; default: UTC.',
    examples: ['Europe/Berlin'],
  }),
  warnAt: warnAt.optional().meta({
    description:
      'The parts of the amount at which the budget is shown as nearly used up and `budget.level` is sent; default: none.',
    examples: [['0.8']],
  }),
  raise: raise.optional().meta({
    description: 'A raise for a time; default: none.',
    examples: [{ amount: '10', until: '2030-01-01T00:00:00Z' }],
  }),
};

const budgetText = z
  .string(budgetForm)
  .transform(readBy(splitBudget, () => budgetForm))
  .pipe(z.strictObject(budgetSettings));

/** A whole budget of the config: a text such as `20/month`, or an object with all settings. */
export const budgetOfConfig = z
  .union([budgetText, z.strictObject(budgetSettings)])
  .meta({ examples: ['20/month'] });

/** A whole budget as the admin API takes it: `null` is no raise, as in changes to it. */
export const wholeBudget = z.strictObject({ ...budgetSettings, raise: raise.nullish() });

/** Changes to a budget: a missing setting stays as it is, and `null` ends a raise. */
export const changedBudget = wholeBudget.partial();
