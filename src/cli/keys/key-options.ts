import { budgetForm, splitBudget } from '../../shared/budget-text.ts';
import { AdminRefusal } from '../admin-client.ts';
import { keySettings, optionOf } from '../commands/key-settings.ts';
import type { Json } from '../output.ts';

/** The options of a budget, as commander names them. */
interface BudgetOptions {
  readonly budget?: string;
  readonly timeZone?: string;
  readonly warnAt?: readonly string[];
  readonly raise?: string;
  readonly raiseUntil?: string;
}

/** The options of `create` and `update`, as commander names them: those of all settings of a key. */
export interface KeyOptions extends Json, BudgetOptions {
  readonly [setting: string]: string | number | readonly string[] | true | undefined;
}

/** The options of `list`. */
export interface ListOptions extends Json {
  /** A part of the name or the beginning of the id of those that are listed. */
  readonly search?: string;
  /** The order; newest first without it. */
  readonly sort?: 'created' | 'name' | 'spent' | 'balance';
}

/** The options of `rotate`. */
export interface RotateOptions extends Json {
  readonly grace: string;
}

/** The options of `credit`. */
export interface CreditOptions extends Json {
  readonly reference?: string;
}

/** The settings of a key as the admin API takes them; one that is not given stays as it is. */
export function settingsOf(options: KeyOptions): object {
  const { name, balance } = options;
  const settings: Record<string, unknown> = { name, balance };
  const compatibility: Record<string, unknown> = {};
  for (const { none, ...setting } of keySettings) {
    const [field = '', part] = setting.field.split('.');
    const given = options[optionOf(setting).attributeName()];
    if (field === 'compatibility' && part !== undefined) compatibility[part] = truthOf(given);
    else if (field !== 'budget')
      settings[field] = given === undefined || String(given) !== none ? given : null;
  }
  return { ...settings, compatibility, budget: budgetOf(options) };
}

function truthOf(given: KeyOptions[string]): unknown {
  return given === 'true' || given === 'false' ? given === 'true' : given;
}

/** The options that are settings of a budget. */
const settingOptions = '--time-zone, --warn-at and --raise';

/** The settings of a new key as the admin API takes them; settings of a budget need one. */
export function settingsOfNew(options: KeyOptions): object {
  const { budget, timeZone, warnAt, raise } = options;
  if (budget === undefined && [timeZone, warnAt, raise].some((value) => value !== undefined))
    throw new Error(`--budget is missing: ${settingOptions} belong to one, such as --budget 20/month`);
  return settingsOf(options);
}

/** The budget as the admin API takes it: `null` removes it, and what is not given stays as it is. */
function budgetOf({ budget, timeZone, warnAt, raise, raiseUntil }: BudgetOptions): object | null | undefined {
  const others = { timeZone, warnAt, raise, raiseUntil };
  if (budget === 'none') {
    // They would be dropped without a word.
    if (Object.values(others).some((value) => value !== undefined))
      throw new Error(`--budget none takes the budget away: leave out ${settingOptions}`);
    return null;
  }
  const parts = budget === undefined ? {} : splitBudget(budget);
  if (parts === null) throw new Error(`--budget: ${budgetForm}, or none`);
  const settings = {
    ...parts,
    timeZone,
    warnAt: String(warnAt) === 'none' ? [] : warnAt,
    raise: raiseOf(raise, raiseUntil),
  };
  return Object.values(settings).every((value) => value === undefined) ? undefined : settings;
}

function raiseOf(amount: string | undefined, until: string | undefined): object | null | undefined {
  if (amount === 'none' && until === undefined) return null;
  if ((amount === undefined) !== (until === undefined))
    throw new Error('--raise and --raise-until are given together, or --raise none alone');
  return amount === undefined ? undefined : { amount, until };
}

/** What an operator writes for a field of the admin API; other fields have the name of their argument. */
const written: Readonly<Record<string, string>> = {
  ...Object.fromEntries(keySettings.map(({ field, flags }) => [field, flags.slice(0, flags.indexOf(' '))])),
  'budget.amount': '--budget',
  'budget.per': '--budget',
  balance: '--balance',
  grace: '--grace',
  reference: '--reference',
  from: '--from',
  to: '--to',
  by: '--by',
  outcome: '--outcome',
  status: '--status',
  cause: '--cause',
  min_duration_ms: '--min-duration',
  max_duration_ms: '--max-duration',
  min_amount: '--min-amount',
  amount: '<usd>',
  name: 'the name',
};

/** Calls the admin API; a refusal that names a field names the option or argument instead. */
export function withOptionNames<Result>(call: () => Promise<Result>): Promise<Result> {
  return withFieldNames(call, written);
}

/** Calls the admin API; a refusal that names a field has what the operator wrote for it instead, by these names. */
export async function withFieldNames<Result>(
  call: () => Promise<Result>,
  names: Readonly<Record<string, string>>,
): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof AdminRefusal)) throw error;
    const named = error.message.replace(/^Invalid '([\w.]+)': /, (whole, field: string) => {
      const option = names[field.replace(/\.\d+$/, '')];
      return option === undefined ? whole : `${option}: `;
    });
    throw new AdminRefusal(error.status, named);
  }
}
