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

/** What the books are read from. */
export interface Books {
  auditAccounts(): Promise<readonly AuditedAccount[]>;
  /** Rows of the ledger that are missing between the first and the last. */
  countLedgerGaps(): Promise<number>;
  /** Settled records whose charge no ledger row carries, or another amount than the record's. */
  countMismatchedCharges(): Promise<number>;
  /** Calls back with every settled record that was charged by tokens. */
  eachCharged(visit: (record: ConsumptionRecord) => void): Promise<void>;
}

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
  let imbalanceNanos = 0;
  const accounts = await books.auditAccounts();
  for (const account of accounts) {
    const { keyId, balanceNanos, heldNanos, spentNanos, ledgerNanos, chargedNanos, openHoldNanos } = account;
    if (heldNanos !== openHoldNanos)
      faults.push(`${keyId}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
    if (spentNanos !== chargedNanos)
      faults.push(`${keyId}: spent ${spentNanos}, but was charged ${chargedNanos}`);
    if (balanceNanos === null || balanceNanos + heldNanos === ledgerNanos) continue;
    imbalanceNanos += Math.abs(balanceNanos + heldNanos - ledgerNanos);
    faults.push(
      `${keyId}: balance and holds are ${balanceNanos + heldNanos}, but its ledger says ${ledgerNanos}`,
    );
  }
  const gaps = await books.countLedgerGaps();
  if (gaps > 0) faults.push(`the ledger lacks ${gaps} rows`);
  const mismatched = await books.countMismatchedCharges();
  if (mismatched > 0) faults.push(`${mismatched} records and their ledger rows differ`);
  let records = 0;
  await books.eachCharged((record) => {
    records++;
    if (!isPlausible(record)) faults.push(`${record.requestId}: its charge is not its tokens' price`);
  });
  return { accounts: accounts.length, records, imbalanceNanos, faults };
}

/** What was charged is the price of the tokens; or less, where our own count was cut at the hold. */
function isPlausible({ usage, price, chargeNanos, holdNanos, usageSource }: ConsumptionRecord): boolean {
  if (usage === null) return chargeNanos === 0;
  const cost = costOf(usage, price);
  if (chargeNanos === 0 || chargeNanos === cost) return true;
  return usageSource === 'counted' && chargeNanos === Math.min(cost, holdNanos);
}
