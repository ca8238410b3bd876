import type { Accounts } from '../domain/ports/accounts.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { OpenRecords } from '../domain/ports/records.ts';
import type { SharedDuty } from '../domain/ports/shared-changes.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { repeatAudits } from './repeat-audits.ts';
import type { RepeatedAudits } from './repeat-audits.ts';
import { repeat } from './repeat.ts';
import { sweepOrphans } from './sweep-orphans.ts';

/** How often open records are swept and counted, in milliseconds. */
const sweepMs = 15_000;

/** What the ledger and the records showed at the last check. */
export interface LedgerFigures {
  /** Records that are open, with their holds. */
  readonly openHolds: number;
  /** The sum of all differences between accounts and ledger, in nano-USD; `null` unless the last audit came to its end. */
  readonly imbalanceNanos: number | null;
  /** Keys in use whose balance is below the configured mark. */
  readonly lowBalances: number;
  /** Budgets that have reached a warning level in their current period. */
  readonly warnedBudgets: number;
}

/** What the monitor reads, beside the rows of an audit. */
type MonitoredStore = OpenRecords & Pick<Accounts, 'countLowBalances' | 'countWarnedBudgets'>;

/** The monitoring of the ledger. */
export interface LedgerMonitor {
  /** `null` while another process that shares the database audits it, so that sums over processes count it once. */
  readonly figures: LedgerFigures | null;
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
  /** Called after each audit that came to its end, with the sum of all differences in nano-USD and the number of faults. */
  readonly onAudited?: (imbalanceNanos: number, faults: number) => void;
  readonly onFault: ReportFault;
  /** The audits, where processes share the database: one of them counts and audits for all. */
  readonly duty?: SharedDuty | null;
}

/** Closes open records that no process will settle, and keeps the figures that operators watch up to date. */
export function monitorLedger(
  records: MonitoredStore,
  ledger: LedgerAudit,
  clock: Clock,
  {
    ready,
    lowBalanceNanos,
    isPending,
    onExpired,
    onAudited = () => {},
    onFault,
    duty = null,
  }: MonitorOptions,
): LedgerMonitor {
  const stopping = new AbortController();
  const { signal } = stopping;
  let counts = { openHolds: 0, lowBalances: 0, warnedBudgets: 0 };
  /** `null` while they are the duty of another process. */
  let audits: RepeatedAudits | null = null;

  const check = async (): Promise<void> => {
    try {
      const expired = await sweepOrphans(records, isPending, clock.now());
      if (expired > 0) {
        onExpired(expired);
        onFault('open records without a request were closed', `${expired} of them`);
      }
      if (duty !== null) await followDuty(await duty.isOurs());
      if (signal.aborted || audits === null) return;
      const openHolds = await records.countOpen();
      const lowBalances = await records.countLowBalances(lowBalanceNanos(), clock.now());
      const warnedBudgets = await records.countWarnedBudgets(clock.now());
      counts = { openHolds, lowBalances, warnedBudgets };
    } catch (error) {
      if (!signal.aborted) onFault('ledger check failed', error);
    }
  };
  const startAudits = (): RepeatedAudits => repeatAudits(ledger, clock, onFault, onAudited);
  const followDuty = async (isOurs: boolean): Promise<void> => {
    if (signal.aborted) return;
    if (isOurs) {
      audits ??= startAudits();
    } else {
      await audits?.stop();
      audits = null;
    }
  };
  let checked: (() => Promise<void>) | null = null;
  const start = (): void => {
    if (signal.aborted) return;
    checked = repeat(check, { firstMs: 0, delayMs: sweepMs }, clock, signal);
    if (duty === null) audits = startAudits();
  };
  ready.then(start, () => {});
  return {
    get figures() {
      const imbalanceNanos = audits?.imbalanceNanos ?? null;
      return duty !== null && audits === null ? null : { ...counts, imbalanceNanos };
    },
    async stop() {
      stopping.abort(new Error('the ledger monitor is stopping'));
      await Promise.all([checked?.(), audits?.stop()]);
    },
  };
}
