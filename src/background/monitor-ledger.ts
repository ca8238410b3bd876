import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { createPause } from '../operations/pause.ts';
import { sweepOrphans } from './sweep-orphans.ts';
import type { OpenRecords } from './sweep-orphans.ts';
import { auditAccounts } from '../operations/verify-ledger.ts';
import type { LedgerAudit } from '../operations/verify-ledger.ts';

/** How often open records are looked over and counted, in milliseconds. */
const lookMs = 15_000;

/** How long after an audit all accounts are added up again, in milliseconds: with many of them it takes a while. */
const auditMs = 600_000;

/** How long an audit leaves the database alone between two reads, in milliseconds. */
const auditPauseMs = 20;

/** How many faults of one audit are told one by one. */
const maxToldFaults = 20;

/** What the books showed when they were last looked at. */
export interface LedgerFigures {
  /** Records that are open, with their holds. */
  readonly openHolds: number;
  /** The sum of all differences between accounts and ledger, in nano-USD; `null` unless the last audit came to its end. */
  readonly imbalanceNanos: number | null;
  /** Keys in use whose balance is below the mark. */
  readonly lowBalances: number;
}

/** What the watch looks at. */
export interface MonitoredStore extends OpenRecords {
  countOpen(): Promise<number>;
  /** Keys in use at a time with a balance under so many nano-USD. */
  countLowBalances(belowNanos: number, now: number): Promise<number>;
}

export interface LedgerMonitor {
  readonly figures: LedgerFigures;
  /** Resolves when nothing is read any more. */
  stop(): Promise<void>;
}

interface WatchOptions {
  readonly lowBalanceNanos: () => number;
  /** Whether a request is still on its way, or its settlement waits for the database. */
  readonly isKnown: (requestId: string) => boolean;
  readonly onExpired: (count: number) => void;
  readonly onFault: ReportFault;
}

/** Closes what nobody will settle any more, and keeps the figures that operators watch, now and then. */
export function monitorLedger(
  records: MonitoredStore,
  books: LedgerAudit,
  clock: Clock,
  { lowBalanceNanos, isKnown, onExpired, onFault }: WatchOptions,
): LedgerMonitor {
  const stopping = new AbortController();
  const { signal } = stopping;
  let counts = { openHolds: 0, lowBalances: 0 };
  let imbalanceNanos: number | null = null;

  const audit = async (): Promise<void> => {
    let told = 0;
    const tell = (fault: string): void => {
      if (++told <= maxToldFaults) onFault('the books do not balance', fault);
    };
    try {
      imbalanceNanos = (await auditAccounts(books, tell, createPause(clock, auditPauseMs, signal)))
        .imbalanceNanos;
    } catch (error) {
      imbalanceNanos = null;
      if (!signal.aborted) onFault('the books could not be audited', error);
    }
    if (told > maxToldFaults) onFault('the books do not balance', `and ${told - maxToldFaults} faults more`);
  };
  const look = async (): Promise<void> => {
    try {
      const expired = await sweepOrphans(records, isKnown, clock.now());
      if (expired > 0) {
        onExpired(expired);
        onFault('open records without a request were closed', `${expired} of them`);
      }
      if (signal.aborted) return;
      const openHolds = await records.countOpen();
      const lowBalances = await records.countLowBalances(lowBalanceNanos(), clock.now());
      counts = { openHolds, lowBalances };
    } catch (error) {
      if (!signal.aborted) onFault('the books could not be looked over', error);
    }
  };
  const tasks = [repeat(look, lookMs, clock, signal), repeat(audit, auditMs, clock, signal)];
  return {
    get figures() {
      return { ...counts, imbalanceNanos };
    },
    async stop() {
      stopping.abort(new Error('the books are being closed'));
      await Promise.all(tasks.map((task) => task()));
    },
  };
}

/**
 * Does some work now, and again so long after each end of it, until the signal is raised. Returns a function that
 * resolves when the last work is done.
 */
function repeat(
  work: () => Promise<void>,
  delayMs: number,
  clock: Clock,
  signal: AbortSignal,
): () => Promise<void> {
  let working = Promise.resolve();
  let cancel = clock.schedule(0, again);
  signal.addEventListener('abort', () => cancel(), { once: true });
  function again(): void {
    working = work().then(() => {
      if (!signal.aborted) cancel = clock.schedule(delayMs, again);
    });
  }
  return () => working;
}
