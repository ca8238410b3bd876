import type { Clock, ReportFault } from '../domain/ports.ts';
import { sweepOrphans } from './sweep-orphans.ts';
import type { OpenRecords } from './sweep-orphans.ts';
import { auditAccounts } from './verify-ledger.ts';
import type { Books } from './verify-ledger.ts';

/** How often open records are looked over and counted, in milliseconds. */
const lookMs = 15_000;

/** How often all accounts are added up again, in milliseconds: with many of them it takes a while. */
const auditMs = 600_000;

/** How many faults of one audit are told one by one. */
const maxToldFaults = 20;

/** What the books showed when they were last looked at. */
export interface BookFigures {
  /** Records that are open, with their holds. */
  readonly openHolds: number;
  /** The sum of all differences between accounts and ledger, in nano-USD. */
  readonly imbalanceNanos: number;
  /** Keys in use whose balance is below the mark. */
  readonly lowBalances: number;
}

/** What the watch looks at. */
export interface WatchedBooks extends OpenRecords {
  countOpen(): Promise<number>;
  /** Keys in use at a time with a balance under so many nano-USD. */
  countLowBalances(belowNanos: number, now: number): Promise<number>;
}

export interface BookWatch {
  readonly figures: BookFigures;
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
export function watchBooks(
  records: WatchedBooks,
  books: Books,
  clock: Clock,
  { lowBalanceNanos, isKnown, onExpired, onFault }: WatchOptions,
): BookWatch {
  let figures: BookFigures = { openHolds: 0, imbalanceNanos: 0, lowBalances: 0 };
  let auditedMs = Number.NEGATIVE_INFINITY;
  let stopped = false;

  const audit = async (): Promise<number> => {
    let told = 0;
    const { imbalanceNanos } = await auditAccounts(books, (fault) => {
      if (++told <= maxToldFaults) onFault('the books do not balance', fault);
    });
    if (told > maxToldFaults) onFault('the books do not balance', `and ${told - maxToldFaults} faults more`);
    return imbalanceNanos;
  };
  const look = async (): Promise<void> => {
    const expired = await sweepOrphans(records, isKnown, clock.now());
    if (expired > 0) {
      onExpired(expired);
      onFault('open records without a request were closed', `${expired} of them`);
    }
    if (stopped) return;
    let { imbalanceNanos } = figures;
    if (clock.monotonicMs() - auditedMs >= auditMs) {
      auditedMs = clock.monotonicMs();
      imbalanceNanos = await audit();
    }
    if (stopped) return;
    const openHolds = await records.countOpen();
    const lowBalances = await records.countLowBalances(lowBalanceNanos(), clock.now());
    figures = { openHolds, imbalanceNanos, lowBalances };
  };
  let looking = Promise.resolve();
  let cancel = clock.schedule(0, again);
  function again(): void {
    looking = look()
      .catch((error: unknown) => {
        if (!stopped) onFault('the books could not be looked over', error);
      })
      .then(() => {
        if (!stopped) cancel = clock.schedule(lookMs, again);
      });
  }
  return {
    get figures() {
      return figures;
    },
    async stop() {
      stopped = true;
      cancel();
      await looking;
    },
  };
}
