import { costOf } from '../domain/pricing.ts';
import type { ConsumptionRecord } from '../domain/consumption.ts';

/** What an account holds, beside what the ledger and the records say that it must hold; amounts in nano-USD. */
interface AuditedAccount {
  readonly keyId: string;
  readonly balanceNanos: number | null;
  readonly heldNanos: number;
  readonly spentNanos: number;
  /** The sum of its ledger rows. */
  readonly ledgerNanos: number;
  /** The charges among them, as a positive sum. */
  readonly chargedNanos: number;
  /** The sum of the holds of its open records. */
  readonly openHoldNanos: number;
}

/** What the books are read from, a few rows at a time. */
export interface Books {
  eachAccount(visit: (account: AuditedAccount) => void): Promise<void>;
  /** Calls back with every settled record, and what the ledger says was charged for it. */
  eachSettled(visit: (record: ConsumptionRecord, postedNanos: number) => void): Promise<void>;
  /** Rows of the ledger that are missing between the first and the last. */
  countLedgerGaps(): Promise<number>;
}

/** How many faults are told one by one; the rest is counted. */
const maxFaults = 1_000;

/** What verification found: nothing is wrong when `faults` is empty. */
export interface Verification {
  readonly accounts: number;
  readonly records: number;
  /** The sum of all differences between accounts and ledger, in nano-USD. */
  readonly imbalanceNanos: number;
  readonly faults: readonly string[];
}

/** Adds the books up again from nothing but their rows. */
export async function verifyLedger(books: Books): Promise<Verification> {
  const faults: string[] = [];
  let untold = 0;
  const tell = (fault: string): void => {
    if (faults.length < maxFaults) faults.push(fault);
    else untold++;
  };
  const { accounts, imbalanceNanos } = await auditAccounts(books, tell);
  let records = 0;
  await books.eachSettled((record, postedNanos) => {
    records++;
    const { requestId, chargeNanos } = record;
    if (postedNanos !== chargeNanos)
      tell(`${requestId}: was charged ${chargeNanos}, but its ledger row says ${postedNanos}`);
    if (!isPlausible(record)) tell(`${requestId}: its charge is not its tokens' price`);
  });
  if (untold > 0) faults.push(`and ${untold} more`);
  return { accounts, records, imbalanceNanos, faults };
}

/** The part of it that is quick: every account beside its ledger rows, and whether rows of the ledger are missing. */
export async function auditAccounts(
  books: Books,
  tell: (fault: string) => void,
): Promise<{ readonly accounts: number; readonly imbalanceNanos: number }> {
  let [accounts, imbalanceNanos] = [0, 0];
  await books.eachAccount((account) => {
    accounts++;
    imbalanceNanos += auditAccount(account, tell);
  });
  const gaps = await books.countLedgerGaps();
  if (gaps > 0) tell(`the ledger lacks ${gaps} rows`);
  return { accounts, imbalanceNanos };
}

/** By how much an account and its ledger differ. */
function auditAccount(account: AuditedAccount, tell: (fault: string) => void): number {
  const { keyId, balanceNanos, heldNanos, spentNanos, ledgerNanos, chargedNanos, openHoldNanos } = account;
  if (heldNanos !== openHoldNanos)
    tell(`${keyId}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
  if (spentNanos !== chargedNanos) tell(`${keyId}: spent ${spentNanos}, but was charged ${chargedNanos}`);
  if (balanceNanos === null || balanceNanos + heldNanos === ledgerNanos) return 0;
  tell(`${keyId}: balance and holds are ${balanceNanos + heldNanos}, but its ledger says ${ledgerNanos}`);
  return Math.abs(balanceNanos + heldNanos - ledgerNanos);
}

/** What was charged is the price of the tokens; or less, where our own count was cut at the hold. */
function isPlausible({ usage, price, chargeNanos, holdNanos, usageSource }: ConsumptionRecord): boolean {
  if (usage === null) return chargeNanos === 0;
  const cost = costOf(usage, price);
  if (chargeNanos === 0 || chargeNanos === cost) return true;
  return usageSource === 'counted' && chargeNanos === Math.min(cost, holdNanos);
}
