import { maxNanos } from '../../shared/money.ts';
import { withoutAbsent } from '../../shared/override.ts';
import { periodAt } from './calendar.ts';
import type { BudgetPeriod, PeriodBounds } from './calendar.ts';

/** Whose budget a request counts in: that of its key, or that of the group of its key. */
export const budgetOwners = ['key', 'group'] as const;

export type BudgetOwner = (typeof budgetOwners)[number];

/** What may be spent in each period of the calendar; it is full again with every new one. */
export interface Budget {
  readonly amountNanos: number;
  readonly per: BudgetPeriod;
  /** A name of the IANA database, such as `Europe/Berlin`, in whose calendar the periods are. */
  readonly timeZone: string;
  /** The parts of the amount at which it is shown as nearly used up, in thousandths, ascending. */
  readonly warnAt: readonly number[];
  /** What is added to the amount until a time (milliseconds since 1970); `null` without a raise. */
  readonly raise: { readonly nanos: number; readonly untilMs: number } | null;
}

/** Changes to a budget: a missing field leaves it as it is. */
export type BudgetChanges = Partial<Budget>;

/** A warning level of a budget: a part of its amount in thousandths, and what has to be spent to reach it, in nano-USD. */
interface WarningLevel {
  readonly part: number;
  readonly nanos: number;
}

/** What a request asks of a budget when it begins; amounts in nano-USD. */
export interface BudgetTerms extends PeriodBounds {
  readonly id: string;
  readonly owner: BudgetOwner;
  /** What may be spent in the period: the amount with a raise that is in force. */
  readonly limitNanos: number;
  /** In ascending order. */
  readonly levels: readonly WarningLevel[];
}

/** The budget and the period in which a request counts: that in which it began, whenever it ends. */
export interface CountedBudget extends BudgetTerms {
  /** What was set aside of it, in nano-USD. */
  readonly holdNanos: number;
}

/** A budget's current period as it is stored; amounts in nano-USD. */
export interface StoredPeriod extends PeriodBounds {
  /** The charges of the ended requests that began in it. */
  readonly spentNanos: number;
  /** Set aside for requests in progress that began in it. */
  readonly heldNanos: number;
  /** The highest warning level that was reached in it, in thousandths; 0 for none. */
  readonly level: number;
}

/** A budget as its owner sees it at a moment. */
export interface BudgetUse extends StoredPeriod {
  readonly budget: Budget;
  /** What may be spent in this period, in nano-USD. */
  readonly limitNanos: number;
  /** The highest warning level that was reached, in thousandths; `null` where none was. */
  readonly warnedAt: number | null;
}

/**
 * The name under which a budget's current period is stored. It has the kind of the period and the zone, so that a budget whose
 * calendar is changed begins anew: periods of two calendars overlap, and none of them is before or after the other.
 */
export function budgetIdOf(ownerId: string, { per, timeZone }: Pick<Budget, 'per' | 'timeZone'>): string {
  return `${ownerId} ${per} ${timeZone}`;
}

/** What the name of a budget says of it; the reverse of `budgetIdOf`. */
export function readBudgetId(id: string): { readonly ownerId: string } & Pick<Budget, 'timeZone'> & {
    readonly per: string;
  } {
  const [ownerId = '', per = '', timeZone = ''] = id.split(' ');
  return { ownerId, per, timeZone };
}

/** What a request that arrives at a time (milliseconds since 1970) asks of a budget of its key or group, by the id of that. */
export function termsOf(owner: BudgetOwner, ownerId: string, budget: Budget, atMs: number): BudgetTerms {
  const { per, timeZone } = budget;
  const { startMs, endMs } = periodAt(atMs, per, timeZone);
  const limitNanos = limitAt(budget, atMs);
  const levels = budget.warnAt.map((part) => ({ part, nanos: partOf(limitNanos, part) }));
  return { id: budgetIdOf(ownerId, budget), owner, startMs, endMs, limitNanos, levels };
}

/** The settings of a budget as the config and the admin API are read. */
interface GivenBudget {
  readonly amount?: number | undefined;
  readonly per?: BudgetPeriod | undefined;
  readonly timeZone?: string | undefined;
  /** Parts of the amount such as `0.8`. */
  readonly warnAt?: readonly string[] | undefined;
  readonly raise?: { readonly amount: number; readonly until: number } | null | undefined;
}

/** The changes that are given to a budget, without those that are not. */
export function changesOf({ amount, per, timeZone, warnAt, raise }: GivenBudget): BudgetChanges {
  return withoutAbsent({
    amountNanos: amount,
    per,
    timeZone,
    warnAt: warnAt && thousandthsOf(warnAt),
    raise: raise && { nanos: raise.amount, untilMs: raise.until },
  });
}

/** A new budget, with defaults for the settings that are not given. */
export function budgetOf(given: GivenBudget & Required<Pick<GivenBudget, 'amount' | 'per'>>): Budget {
  const { amount: amountNanos = 0, per = 'month' } = given;
  return { amountNanos, per, timeZone: 'UTC', warnAt: [], raise: null, ...changesOf(given) };
}

/** A budget as it is at a time: as it is stored, or untouched, if no request has begun in the period of that time. */
export function useOf(budget: Budget, stored: StoredPeriod | undefined, atMs: number): BudgetUse {
  const now = periodAt(atMs, budget.per, budget.timeZone);
  const limitNanos = limitAt(budget, atMs);
  // A node whose clock is ahead may have begun the next period.
  const isCurrent = stored !== undefined && stored.startMs >= now.startMs;
  const period = isCurrent ? stored : { ...now, spentNanos: 0, heldNanos: 0, level: 0 };
  const isReached = (part: number): boolean => period.spentNanos >= partOf(limitNanos, part);
  return { ...period, budget, limitNanos, warnedAt: budget.warnAt.findLast(isReached) ?? null };
}

function thousandthsOf(parts: readonly string[]): readonly number[] {
  const found = new Set(parts.map((part) => Math.round(Number(part) * 1_000)));
  return [...found].toSorted((one, other) => one - other);
}

function limitAt({ amountNanos, raise }: Budget, atMs: number): number {
  const raised = raise !== null && atMs < raise.untilMs ? raise.nanos : 0;
  return Math.min(amountNanos + raised, maxNanos);
}

/** Some thousandths of an amount, rounded up: the whole of it is not reached before it is spent. */
function partOf(nanos: number, thousandths: number): number {
  return Number((BigInt(nanos) * BigInt(thousandths) + 999n) / 1_000n);
}
