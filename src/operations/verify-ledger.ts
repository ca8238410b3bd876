import { costOf, noTokens } from '../domain/money/pricing.ts';
import { isPaid, isPassagePaid } from '../domain/money/settlement.ts';
import type { ConsumptionRecord } from '../domain/money/consumption.ts';
import { noPause } from '../domain/pause.ts';
import type { Pause } from '../domain/pause.ts';
import type { AuditedAccount, AuditedBudget, LedgerAudit } from '../domain/ports/ledger-audit.ts';

/** How many faults are listed one by one; the rest is counted. */
const maxFaults = 1_000;

/** How many rows of the ledger an audit holds against their seals: a tenth of a second of work. */
const sealedRowsPerAudit = 20_000;

/** What verification found: nothing is wrong when `faults` is empty. */
export interface Verification {
  readonly accounts: number;
  readonly records: number;
  /** The sum of all differences between accounts and ledger, in nano-USD. */
  readonly imbalanceNanos: number;
  readonly faults: readonly string[];
}

/** Adds the ledger up again from its rows alone. Rejects when they can't be read, or when `pause` does. */
export async function verifyLedger(audit: LedgerAudit, pause: Pause = noPause): Promise<Verification> {
  const faults: string[] = [];
  let unlisted = 0;
  const report = (fault: string): void => {
    if (faults.length < maxFaults) faults.push(fault);
    else unlisted++;
  };
  const sums = await auditSums(audit, report, pause);
  const sealNanos = await auditSeals(audit, null, report, pause);
  const imbalanceNanos = sums.imbalanceNanos + sealNanos + (await verifySpending(audit, report, pause));
  let records = 0;
  for await (const page of audit.settled(pause)) {
    records += page.length;
    for (const { record, postedNanos } of page) verifyRecord(record, postedNanos, report);
  }
  if (unlisted > 0) faults.push(`and ${unlisted} more`);
  return { accounts: sums.accounts, records, imbalanceNanos, faults };
}

/**
 * The part of a verification that is quick: every account beside its ledger rows, some of these beside their seals, and the
 * holds of every budget.
 */
export async function auditAccounts(
  audit: LedgerAudit,
  report: (fault: string) => void,
  pause: Pause = noPause,
): Promise<AuditedSums> {
  const { accounts, imbalanceNanos } = await auditSums(audit, report, pause);
  const changedNanos = await auditSeals(audit, sealedRowsPerAudit, report, pause);
  return { accounts, imbalanceNanos: imbalanceNanos + changedNanos };
}

interface AuditedSums {
  readonly accounts: number;
  readonly imbalanceNanos: number;
}

/** Whether the ledger is still what was sealed. What a changed row said is unknown: each counts as one nano-USD. */
async function auditSeals(
  audit: LedgerAudit,
  mostRows: number | null,
  report: (fault: string) => void,
  pause: Pause,
): Promise<number> {
  let changed = 0;
  for await (const faults of audit.sealFaults(pause, mostRows)) {
    changed += faults.length;
    for (const fault of faults) report(fault);
  }
  return changed;
}

/** Every account beside its ledger rows, none of which may be missing. */
async function auditSums(
  audit: LedgerAudit,
  report: (fault: string) => void,
  pause: Pause,
): Promise<AuditedSums> {
  let [count, imbalanceNanos] = [0, 0];
  for await (const accounts of audit.audit(pause)) {
    count += accounts.length;
    for (const account of accounts) imbalanceNanos += auditAccount(account, report);
  }
  for await (const budgets of audit.budgets(pause))
    for (const budget of budgets) imbalanceNanos += auditBudget(budget, report);
  return { accounts: count, imbalanceNanos };
}

/** Whether a record was charged what the ledger says, and what its tokens cost. */
function verifyRecord(record: ConsumptionRecord, postedNanos: number, report: (fault: string) => void): void {
  const { requestId, chargeNanos } = record;
  if (postedNanos !== chargeNanos)
    report(`${requestId}: was charged ${chargeNanos}, but its ledger row says ${postedNanos}`);
  if (!isPlausible(record)) report(`${requestId}: its charge is not what its outcome and its tokens cost`);
}

/** By how much an account differs from its ledger rows, and from the holds of its open records; in nano-USD. */
function auditAccount(account: AuditedAccount, report: (fault: string) => void): number {
  const {
    keyId,
    balanceNanos,
    heldNanos,
    spentNanos,
    ledgerNanos,
    chargedNanos,
    usageNanos,
    openHoldNanos,
    postings,
    lastNumber,
    ledgerRows,
    doubledRows,
    foldedCreditNanos,
    keptCreditNanos,
  } = account;
  if (heldNanos !== openHoldNanos)
    report(`${keyId}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
  if (spentNanos !== chargedNanos) report(`${keyId}: spent ${spentNanos}, but was charged ${chargedNanos}`);
  if (spentNanos !== usageNanos) report(`${keyId}: spent ${spentNanos}, but its usage says ${usageNanos}`);
  if (![balanceNanos ?? 0, heldNanos, spentNanos].every(Number.isSafeInteger))
    report(`${keyId}: holds amounts that are too large to be exact`);
  if (ledgerRows !== postings)
    report(`${keyId}: was posted to ${postings} times, but has ${ledgerRows} ledger rows`);
  if (doubledRows > 0) report(`${keyId}: ${doubledRows} of its ledger rows have the number of another one`);
  if (ledgerRows < lastNumber)
    report(`${keyId}: its ledger lacks ${lastNumber - ledgerRows} of the numbers from 1 to ${lastNumber}`);
  if (foldedCreditNanos !== keptCreditNanos)
    report(`${keyId}: its folded credits are ${keptCreditNanos}, but its fold says ${foldedCreditNanos}`);
  // What a missing row said is unknown, but it was not nothing: it counts as one nano-USD.
  const missing = Math.max(Math.abs(postings - ledgerRows), lastNumber - ledgerRows, doubledRows);
  const spentElsewhere = Math.max(...[chargedNanos, usageNanos].map((sum) => Math.abs(spentNanos - sum)));
  const differences = [heldNanos - openHoldNanos, spentElsewhere, missing];
  differences.push(foldedCreditNanos - keptCreditNanos);
  if (balanceNanos !== null && balanceNanos + heldNanos !== ledgerNanos) {
    report(`${keyId}: balance and holds are ${balanceNanos + heldNanos}, but its ledger says ${ledgerNanos}`);
    differences.push(balanceNanos + heldNanos - ledgerNanos);
  }
  return differences.reduce((sum, difference) => sum + Math.abs(difference), 0);
}

/** By how much a budget holds more or less than its open requests do; in nano-USD. */
function auditBudget(
  { id, heldNanos, openHoldNanos }: AuditedBudget,
  report: (fault: string) => void,
): number {
  if (heldNanos !== openHoldNanos)
    report(`budget ${id}: holds ${heldNanos}, but its open requests hold ${openHoldNanos}`);
  return Math.abs(heldNanos - openHoldNanos);
}

/** By how much what was spent of the budgets differs from the charges of the records that count in them; in nano-USD. */
async function verifySpending(
  audit: LedgerAudit,
  report: (fault: string) => void,
  pause: Pause,
): Promise<number> {
  let imbalanceNanos = 0;
  for await (const page of audit.spending(pause))
    for (const { id, chargedNanos, spentBeforeNanos, spentAfterNanos } of page) {
      const difference = Math.max(0, spentBeforeNanos - chargedNanos, chargedNanos - spentAfterNanos);
      if (difference > 0)
        report(`budget ${id}: spent ${spentAfterNanos}, but its records were charged ${chargedNanos}`);
      imbalanceNanos += difference;
    }
  return imbalanceNanos;
}

/** Whether a record was charged what the settlement table and its price say, as far as the record shows it. */
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
