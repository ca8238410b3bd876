import type { ConsumptionRecord } from '../money/consumption.ts';
import type { Pause } from '../pause.ts';
import type { Account } from './accounts.ts';

/** What an account holds, beside what the ledger and the records say that it must hold; amounts in nano-USD. */
export interface AuditedAccount extends Account {
  readonly keyId: string;
  /** How many postings the account has had: they are numbered from 1 to this. */
  readonly postings: number;
  /** The highest number of its postings, folded ones included; 0 without any. */
  readonly lastNumber: number;
  /** The sum of its postings: of the fold and of the ledger rows behind it. */
  readonly ledgerNanos: number;
  /** The charges among them, as a positive sum. */
  readonly chargedNanos: number;
  /** What its usage says was charged. */
  readonly usageNanos: number;
  /** The number of its ledger rows, and of the postings that are folded. */
  readonly ledgerRows: number;
  /** How many further rows have a number that an earlier one has. */
  readonly doubledRows: number;
  /** What the fold says was paid in. */
  readonly foldedCreditNanos: number;
  /** The sum of the folded credits, which are kept one by one. */
  readonly keptCreditNanos: number;
  /** The sum of the holds of its open records. */
  readonly openHoldNanos: number;
}

/** A budget's current period, beside what open requests and records say of it; amounts in nano-USD. */
export interface AuditedBudget {
  readonly id: string;
  readonly heldNanos: number;
  /** The sum of what the open requests that count in it hold. */
  readonly openHoldNanos: number;
}

/** What the records of a period add up to, beside what was spent in it before and after they were read; in nano-USD. */
export interface AuditedSpending {
  readonly id: string;
  readonly chargedNanos: number;
  /** 0 where records of the period may have been removed. */
  readonly spentBeforeNanos: number;
  readonly spentAfterNanos: number;
}

/** A settled record, and what the ledger says was charged for it. */
interface SettledPosting {
  readonly record: ConsumptionRecord;
  readonly postedNanos: number;
}

/** The rows that a verification of the ledger reads, a page at a time. */
export interface LedgerAudit {
  /** Every account; each page is as the database was at one moment. */
  audit(pause: Pause): AsyncIterable<readonly AuditedAccount[]>;
  /** Every budget; each page is as the database was at one moment. */
  budgets(pause: Pause): AsyncIterable<readonly AuditedBudget[]>;
  /** Every budget whose period is not over meanwhile. */
  spending(pause: Pause): AsyncIterable<readonly AuditedSpending[]>;
  /** Every settled record. */
  settled(pause: Pause): AsyncIterable<readonly SettledPosting[]>;
  /**
   * Computes the chains of the ledger again, and says what contradicts what was sealed: a page for each account that has
   * such faults. With a limit of rows only the newest part of each chain, of as many accounts as that is enough for: the
   * next call goes on with the accounts behind them. Without one, all of every chain, and the roots.
   */
  sealFaults(pause: Pause, mostRows: number | null): AsyncIterable<readonly string[]>;
}
