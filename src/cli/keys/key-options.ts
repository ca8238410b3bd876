import { budgetForm, splitBudget } from '../../shared/budget-text.ts';
import type { Json } from '../output.ts';

/** The options of `create` and `update`, as commander names them. */
export interface KeyOptions extends Json {
  readonly name?: string;
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly tokensPerDay?: number;
  readonly queueWait?: string;
  readonly balance?: string;
  readonly budget?: string;
  readonly timeZone?: string;
  readonly warnAt?: readonly string[];
  readonly raise?: string;
  readonly raiseUntil?: string;
  readonly lowBalance?: string;
  readonly group?: string;
  readonly weight?: number;
  readonly model?: readonly string[];
  readonly allowFrom?: readonly string[];
  readonly tags?: readonly string[];
  readonly expires?: string;
  readonly sampling?: string;
  readonly unknownFields?: string;
  readonly responsesDone?: string;
  readonly usageCost?: string;
  readonly chargeComment?: string;
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

/** The settings of a key as the admin API takes them. */
export function settingsOf(options: KeyOptions): object {
  const { json: _json, model, allowFrom, expires, sampling, unknownFields, ...others } = options;
  const { responsesDone, usageCost, chargeComment, lowBalance: low, group: joined, ...settings } = others;
  const { budget: given, timeZone, warnAt, raise, raiseUntil, ...rest } = settings;
  const budget = budgetOf({ budget: given, timeZone, warnAt, raise, raiseUntil });
  const compatibility = {
    sampling,
    unknownFields,
    responsesDone: truthOf(responsesDone),
    usageCost: truthOf(usageCost),
    chargeComment: truthOf(chargeComment),
  };
  // `all`, `never`, `default` and `none`, which `show` prints for keys without a setting of their own, take it away.
  const expiresAt = expires === 'never' ? null : expires;
  const lowBalance = low === 'default' ? null : low;
  const group = joined === 'none' ? null : joined;
  const lists = { models: unlessAll(model), allowFrom: unlessAll(allowFrom) };
  return { ...rest, ...lists, expiresAt, lowBalance, compatibility, budget, group };
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

type BudgetOptions = Pick<KeyOptions, 'budget' | 'timeZone' | 'warnAt' | 'raise' | 'raiseUntil'>;

/** The budget as the admin API takes it: `null` removes it, and what is not given stays as it is. */
function budgetOf({
  budget,
  timeZone,
  warnAt,
  raise,
  raiseUntil,
}: Given<BudgetOptions>): object | null | undefined {
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
    warnAt: warnAt?.length === 1 && warnAt[0] === 'none' ? [] : warnAt,
    raise: raiseOf(raise, raiseUntil),
  };
  return Object.values(settings).every((value) => value === undefined) ? undefined : settings;
}

type Given<Options> = { readonly [Name in keyof Options]: Options[Name] | undefined };

function raiseOf(amount: string | undefined, until: string | undefined): object | null | undefined {
  if (amount === 'none' && until === undefined) return null;
  if ((amount === undefined) !== (until === undefined))
    throw new Error('--raise and --raise-until are given together, or --raise none alone');
  return amount === undefined ? undefined : { amount, until };
}

function truthOf(option: string | undefined): boolean | undefined {
  return option === undefined ? undefined : option === 'true';
}

function unlessAll(list: readonly string[] | undefined): readonly string[] | null | undefined {
  return list?.length === 1 && list[0] === 'all' ? null : list;
}
