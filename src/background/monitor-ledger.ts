import type { Accounts } from '../domain/ports/accounts.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { OpenRecords } from '../domain/ports/records.ts';
import { auditAccounts } from '../operations/verify-ledger.ts';
import { repeatTask } from './repeat.ts';
import type { DutyOfOne, Task, TaskPorts } from './repeat.ts';

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
export interface LedgerMonitor extends Pick<Task, 'stop'> {
  /** `null` while another process that shares the database audits it, so that sums over processes count it once. */
  readonly figures: LedgerFigures | null;
}

interface MonitorOptions extends TaskPorts {
  readonly lowBalanceNanos: () => number;
  /** Whether a request still runs here, or its settlement waits for the database. */
  readonly isPending: (requestId: string) => boolean;
  readonly onExpired: (count: number) => void;
  /** Called after each audit that came to its end, with the sum of all differences in nano-USD and the number of faults. */
  readonly onAudited?: (imbalanceNanos: number, faults: number) => void;
  /** The audits, and the counts that are shown with them. */
  readonly duty?: DutyOfOne;
}

/** Closes open records that no process will settle, and keeps the figures that operators watch up to date. */
export function monitorLedger(
  records: MonitoredStore,
  ledger: LedgerAudit,
  { lowBalanceNanos, isPending, onExpired, onAudited = () => {}, duty = null, ...ports }: MonitorOptions,
): LedgerMonitor {
  const { clock, onFault } = ports;
  let counts = { openHolds: 0, lowBalances: 0, warnedBudgets: 0 };
  /** `null` while they are the duty of another process. */
  let audits: ReturnType<typeof repeatAudits> | null = null;
  const followDuty = async (areOurs: boolean, { aborted }: AbortSignal): Promise<void> => {
    if (aborted) return;
    if (areOurs) {
      audits ??= repeatAudits(ledger, ports, onAudited);
    } else {
      await audits?.stop();
      audits = null;
    }
  };
  const task = repeatTask(
    ports,
    { firstMs: 0, delayMs: sweepMs, failure: 'ledger check failed' },
    async (signal) => {
      const expired = await sweepOrphans(records, isPending, clock.now());
      if (expired > 0) {
        onExpired(expired);
        onFault('open records without a request were closed', `${expired} of them`);
      }
      if (duty !== null) await followDuty(await duty.isOurs(), signal);
      if (signal.aborted || audits === null) return;
      const openHolds = await records.countOpen();
      const lowBalances = await records.countLowBalances(lowBalanceNanos(), clock.now());
      const warnedBudgets = await records.countWarnedBudgets(clock.now());
      counts = { openHolds, lowBalances, warnedBudgets };
    },
  );
  if (duty === null) audits = repeatAudits(ledger, ports, onAudited);
  return {
    get figures() {
      const imbalanceNanos = audits?.imbalanceNanos ?? null;
      return duty !== null && audits === null ? null : { ...counts, imbalanceNanos };
    },
    async stop() {
      await Promise.all([task.stop(), audits?.stop()]);
    },
  };
}

/** The pause between two audits of all accounts, in milliseconds: with many of them an audit takes a while. */
const auditMs = 600_000;

/** How many faults of one audit are logged one by one. */
const maxLoggedFaults = 20;

/**
 * Audits all accounts again and again, and logs what is wrong. `onAudited` is called after each audit that came to its end.
 */
function repeatAudits(
  ledger: LedgerAudit,
  ports: TaskPorts,
  onAudited: (imbalanceNanos: number, faults: number) => void,
) {
  const { onFault } = ports;
  let imbalanceNanos: number | null = null;
  const times = { firstMs: 0, delayMs: auditMs, failure: 'ledger audit failed' };
  const { stop } = repeatTask(ports, times, async (_signal, pause) => {
    let faults = 0;
    const report = (fault: string): void => {
      if (++faults <= maxLoggedFaults) onFault('ledger imbalance', fault);
    };
    try {
      ({ imbalanceNanos } = await auditAccounts(ledger, report, pause));
      onAudited(imbalanceNanos, faults);
    } catch (error) {
      imbalanceNanos = null;
      throw error;
    } finally {
      if (faults > maxLoggedFaults)
        onFault('ledger imbalance', `and ${faults - maxLoggedFaults} faults more`);
    }
  });
  return {
    /** The sum of all differences between accounts and ledger, in nano-USD; `null` unless the last audit came to its end. */
    get imbalanceNanos() {
      return imbalanceNanos;
    },
    stop,
  };
}

/**
 * How old an own open record must be before it can be an orphan, in milliseconds: its request may not be registered yet.
 * One that is begun as far in the future was begun before this process's clock was set back.
 */
const minAgeMs = 10_000;

/**
 * Closes open records that no process will settle: those of this process without a request, as when the database failed
 * a unit that it had committed, and those of owners without a lease. The hold goes back, and nothing is charged.
 * `isPending` says whether the request still runs here, or its settlement waits for the database. Returns how many were
 * closed.
 */
export async function sweepOrphans(
  records: OpenRecords,
  isPending: (requestId: string) => boolean,
  nowMs: number,
): Promise<number> {
  const closable = await records.listClosable(nowMs - minAgeMs, nowMs + minAgeMs);
  const orphans = [...new Set(closable)].filter((requestId) => !isPending(requestId));
  return orphans.length === 0 ? 0 : records.closeAsLost(orphans);
}
