import { costOf, noTokens } from '../domain/pricing.ts';
import { isPaid, isPassagePaid } from '../domain/settlement.ts';
import type { ConsumptionRecord } from '../domain/consumption.ts';
import type { Pause } from './pause.ts';

/** What an account holds, beside what the ledger and the records say that it must hold; amounts in nano-USD. */
export interface AuditedAccount {
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

/** Some accounts, each as it was at one moment. */
interface AuditPage {
  readonly accounts: readonly AuditedAccount[];
  /** How many rows the ledger lacks between its first and its last; 0 on all pages but the last. */
  readonly missingPostings: number;
}

/** A settled record, and what the ledger says was charged for it. */
interface SettledPosting {
  readonly record: ConsumptionRecord;
  readonly postedNanos: number;
}

/** What the books are read from, a few rows at a time. */
export interface LedgerAudit {
  /** Every account. */
  audit(pause: Pause): AsyncIterable<AuditPage>;
  /** Every settled record. */
  settled(pause: Pause): AsyncIterable<readonly SettledPosting[]>;
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

/** Adds the books up again from nothing but their rows. Rejects when they can't be read, or when `pause` does. */
export async function verifyLedger(books: LedgerAudit, pause: Pause = noPause): Promise<Verification> {
  const faults: string[] = [];
  let untold = 0;
  const tell = (fault: string): void => {
    if (faults.length < maxFaults) faults.push(fault);
    else untold++;
  };
  const { accounts, imbalanceNanos } = await auditAccounts(books, tell, pause);
  let records = 0;
  for await (const page of books.settled(pause)) {
    records += page.length;
    for (const { record, postedNanos } of page) verifyRecord(record, postedNanos, tell);
  }
  if (untold > 0) faults.push(`and ${untold} more`);
  return { accounts, records, imbalanceNanos, faults };
}

/** The part of it that is quick: every account beside its ledger rows, and whether rows of the ledger are missing. */
export async function auditAccounts(
  books: LedgerAudit,
  tell: (fault: string) => void,
  pause: Pause = noPause,
): Promise<{ readonly accounts: number; readonly imbalanceNanos: number }> {
  let [count, imbalanceNanos] = [0, 0];
  for await (const { accounts, missingPostings } of books.audit(pause)) {
    count += accounts.length;
    for (const account of accounts) imbalanceNanos += auditAccount(account, tell);
    if (missingPostings > 0) tell(`the ledger lacks ${missingPostings} rows`);
    // What the missing rows said is unknown, but it was not nothing.
    imbalanceNanos += missingPostings;
  }
  return { accounts: count, imbalanceNanos };
}

async function noPause(): Promise<void> {}

/** Whether a record was charged what the ledger says, and what its tokens cost. */
function verifyRecord(record: ConsumptionRecord, postedNanos: number, tell: (fault: string) => void): void {
  const { requestId, chargeNanos } = record;
  if (postedNanos !== chargeNanos)
    tell(`${requestId}: was charged ${chargeNanos}, but its ledger row says ${postedNanos}`);
  if (!isPlausible(record)) tell(`${requestId}: its charge is not what its outcome and its tokens cost`);
}

/** By how much an account differs from its ledger, from its open requests, and from what it was charged. */
function auditAccount(account: AuditedAccount, tell: (fault: string) => void): number {
  const { keyId, balanceNanos, heldNanos, spentNanos, ledgerNanos, chargedNanos, openHoldNanos } = account;
  if (heldNanos !== openHoldNanos)
    tell(`${keyId}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
  if (spentNanos !== chargedNanos) tell(`${keyId}: spent ${spentNanos}, but was charged ${chargedNanos}`);
  if (![balanceNanos ?? 0, heldNanos, spentNanos].every(Number.isSafeInteger))
    tell(`${keyId}: holds amounts that are too large to be exact`);
  const differences = [heldNanos - openHoldNanos, spentNanos - chargedNanos];
  if (balanceNanos !== null && balanceNanos + heldNanos !== ledgerNanos) {
    tell(`${keyId}: balance and holds are ${balanceNanos + heldNanos}, but its ledger says ${ledgerNanos}`);
    differences.push(balanceNanos + heldNanos - ledgerNanos);
  }
  return differences.reduce((sum, difference) => sum + Math.abs(difference), 0);
}

/** Whether a record was charged what the settlement table and its price say, as far as a record tells that. */
function isPlausible(record: ConsumptionRecord): boolean {
  const { outcome, usage, price, usageSource, protocol, status } = record;
  if (outcome === null) return true;
  const cost = costOf(usage ?? noTokens, price);
  const charge = record.chargeNanos + record.unbookedNanos;
  if (protocol === 'passthrough') return charge === (isPassagePaid(outcome, status) ? cost : 0);
  const paid = isPaid(outcome, record.mode === 'stream' && record.firstTextMs !== null);
  if (charge === 0 || paid === false) return charge === 0 && (paid !== true || cost === 0);
  // Our own count may have been cut at the hold.
  const isCut =
    usageSource === 'counted' && record.holdNanos > 0 && charge === Math.min(cost, record.holdNanos);
  return charge === cost || isCut;
}
