import type { StoredPeriod } from '../budgets/budget.ts';
import type { Account, BookedCredit, Credit } from '../money/account.ts';

/** The money of keys. */
export interface Accounts {
  /** Books a payment; the same reference is booked once. */
  credit(credit: Credit): Promise<BookedCredit>;
  /** The accounts of some keys, by the keys' ids. */
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account>>;
  /** The periods of budgets by their ids, as far as a request has begun in one. */
  budgetPeriods(ids: readonly string[]): Promise<ReadonlyMap<string, StoredPeriod>>;
  /** Counts the keys in use at a time (milliseconds since 1970) whose balance is below a mark, in nano-USD. */
  countLowBalances(belowNanos: number, atMs: number): Promise<number>;
  /** Counts the budgets that have reached a warning level in the period of a time (milliseconds since 1970). */
  countWarnedBudgets(atMs: number): Promise<number>;
}
