import type { Actor } from '../audit/audit-line.ts';
import type { StoredPeriod } from '../budgets/budget.ts';

/** What an account holds: amounts in nano-USD, `balanceNanos` is `null` for a key without a balance. */
export interface Account {
  /** Free to be spent; below zero only if an answer cost more than its hold. */
  readonly balanceNanos: number | null;
  /** Set aside for requests in progress. */
  readonly heldNanos: number;
  readonly spentNanos: number;
}

/** An amount paid in, in nano-USD. The reference names the payment: the same one is booked once. */
export interface Credit {
  readonly keyId: string;
  readonly nanos: number;
  readonly reference: string;
}

/**
 * The result of a credit: booked now, booked before, or refused because its reference stands for another amount, or
 * because the account could not hold the sum exactly.
 */
export interface BookedCredit {
  readonly result: 'booked' | 'booked before' | 'other amount' | 'too much' | 'no such key';
  readonly account: Account | null;
}

/** The prefix of the references of the service's own credits. No payment's reference has it, so the two can't be confused. */
export const ownReferences = 'textgate:';

/** The reference of the credit that a key is made with. */
export const openingReference = `${ownReferences} opening balance`;

/** The reference of the credit that covers what a key had spent before it was given a balance. */
export const coveringReference = `${ownReferences} spent before there was a balance`;

/** The money of keys. */
export interface Accounts {
  /** Books a payment, with a line in the audit where someone did; the same reference is booked once. */
  credit(credit: Credit, by?: Actor): Promise<BookedCredit>;
  /** The accounts of some keys, by the keys' ids. */
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account>>;
  /** The periods of budgets by their ids, as far as a request has begun in one. */
  budgetPeriods(ids: readonly string[]): Promise<ReadonlyMap<string, StoredPeriod>>;
  /** Counts the keys in use at a time (milliseconds since 1970) whose balance is below a mark, in nano-USD. */
  countLowBalances(belowNanos: number, atMs: number): Promise<number>;
  /** Counts the budgets that have reached a warning level in the period of a time (milliseconds since 1970). */
  countWarnedBudgets(atMs: number): Promise<number>;
}
