import { createPause } from '../domain/pause.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { OpenRecords } from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { auditAccounts } from '../operations/verify-ledger.ts';
import { repeat } from './repeat.ts';
import { sweepOrphans } from './sweep-orphans.ts';

/** How often open records are swept and counted, in milliseconds. */
const sweepMs = 15_000;

/** The pause between two audits of all accounts, in milliseconds: with many of them an audit takes a while. */
const auditMs = 600_000;

/** The pause of an audit between two reads of the database, in milliseconds. */
const auditPauseMs = 20;

/** How many faults of one audit are logged one by one. */
const maxLoggedFaults = 20;

/** What the ledger and the records showed at the last check. */
export interface LedgerFigures {
  /** Records that are open, with their holds. */
  readonly openHolds: number;
  /** The sum of all differences between accounts and ledger, in nano-USD; `null` unless the last audit came to its end. */
  readonly imbalanceNanos: number | null;
  /** Keys in use whose balance is below the configured mark. */
  readonly lowBalances: number;
}

/** What the monitor reads, beside the rows of an audit. */
type MonitoredStore = OpenRecords & Pick<Accounts, 'countLowBalances'>;

/** The monitoring of the ledger. */
export interface LedgerMonitor {
  readonly figures: LedgerFigures;
  /** Resolves when nothing is read any more. */
  stop(): Promise<void>;
}

interface MonitorOptions {
  /** Resolves when the database can be read; rejects when it never can be, which is reported where it is opened. */
  readonly ready: Promise<void>;
  readonly lowBalanceNanos: () => number;
  /** Whether a request still runs here, or its settlement waits for the database. */
  readonly isPending: (requestId: string) => boolean;
  readonly onExpired: (count: number) => void;
  readonly onFault: ReportFault;
}

/** Closes open records that no process will settle, and keeps the figures that operators watch up to date. */
export function monitorLedger(
  records: MonitoredStore,
  ledger: LedgerAudit,
  clock: Clock,
  { ready, lowBalanceNanos, isPending, onExpired, onFault }: MonitorOptions,
): LedgerMonitor {
  const stopping = new AbortController();
  const { signal } = stopping;
  let counts = { openHolds: 0, lowBalances: 0 };
  let imbalanceNanos: number | null = null;

  const audit = async (): Promise<void> => {
    let faults = 0;
    const report = (fault: string): void => {
      if (++faults <= maxLoggedFaults) onFault('ledger imbalance', fault);
    };
    try {
      const pause = createPause(clock, auditPauseMs, signal);
      imbalanceNanos = (await auditAccounts(ledger, report, pause)).imbalanceNanos;
    } catch (error) {
      imbalanceNanos = null;
      if (!signal.aborted) onFault('ledger audit failed', error);
    }
    if (faults > maxLoggedFaults) onFault('ledger imbalance', `and ${faults - maxLoggedFaults} faults more`);
  };
  const check = async (): Promise<void> => {
    try {
      const expired = await sweepOrphans(records, isPending, clock.now());
      if (expired > 0) {
        onExpired(expired);
        onFault('open records without a request were closed', `${expired} of them`);
      }
      if (signal.aborted) return;
      const openHolds = await records.countOpen();
      const lowBalances = await records.countLowBalances(lowBalanceNanos(), clock.now());
      counts = { openHolds, lowBalances };
    } catch (error) {
      if (!signal.aborted) onFault('ledger check failed', error);
    }
  };
  let tasks: readonly (() => Promise<void>)[] = [];
  const start = (): void => {
    if (signal.aborted) return;
    tasks = [
      repeat(check, { firstMs: 0, delayMs: sweepMs }, clock, signal),
      repeat(audit, { firstMs: 0, delayMs: auditMs }, clock, signal),
    ];
  };
  ready.then(start, () => {});
  return {
    get figures() {
      return { ...counts, imbalanceNanos };
    },
    async stop() {
      stopping.abort(new Error('the ledger monitor is stopping'));
      await Promise.all(tasks.map((task) => task()));
    },
  };
}
