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
  /** Calls back with every account; resolves with how many rows the ledger lacks between its first and its last. */
  audit(visit: (account: AuditedAccount) => void): Promise<number>;
  /** Calls back with every settled record, and what the ledger says was charged for it. */
  eachSettled(visit: (record: ConsumptionRecord, postedNanos: number) => void): Promise<void>;
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
  const gaps = await books.audit((account) => {
    accounts++;
    imbalanceNanos += auditAccount(account, tell);
  });
  if (gaps > 0) tell(`the ledger lacks ${gaps} rows`);
  // What the missing rows said nobody knows, but it was not nothing.
  return { accounts, imbalanceNanos: imbalanceNanos + gaps };
}

/** By how much an account differs from its ledger, from its open requests, and from what it was charged. */
function auditAccount(account: AuditedAccount, tell: (fault: string) => void): number {
  const { keyId, balanceNanos, heldNanos, spentNanos, ledgerNanos, chargedNanos, openHoldNanos } = account;
  if (heldNanos !== openHoldNanos)
    tell(`${keyId}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
  if (spentNanos !== chargedNanos) tell(`${keyId}: spent ${spentNanos}, but was charged ${chargedNanos}`);
  const differences = [heldNanos - openHoldNanos, spentNanos - chargedNanos];
  if (balanceNanos !== null && balanceNanos + heldNanos !== ledgerNanos) {
    tell(`${keyId}: balance and holds are ${balanceNanos + heldNanos}, but its ledger says ${ledgerNanos}`);
    differences.push(balanceNanos + heldNanos - ledgerNanos);
  }
  return differences.reduce((sum, difference) => sum + Math.abs(difference), 0);
}

/** What was charged is the price of the tokens; or less, where our own count was cut at the hold. */
function isPlausible({ usage, price, chargeNanos, holdNanos, usageSource }: ConsumptionRecord): boolean {
  if (usage === null) return chargeNanos === 0;
  const cost = costOf(usage, price);
  if (chargeNanos === 0 || chargeNanos === cost) return true;
  return usageSource === 'counted' && chargeNanos === Math.min(cost, holdNanos);
}
