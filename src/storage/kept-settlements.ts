import type { SettledRecord } from '../domain/consumption.ts';
import type { Clock, Records, ReportFault } from '../domain/ports.ts';
import { StorageError } from '../domain/storage-refusal.ts';

/** How soon settlements that the database did not take are offered to it again, in milliseconds. */
const retryMs = 1_000;

/** How many are kept in memory; new requests are refused long before, since they can't be recorded. */
const maxKept = 100_000;

/** Records whose settlements are not lost while the database is full, locked or away. */
export interface KeptSettlements extends Records {
  /** Settlements that wait for the database. */
  readonly waiting: number;
  /** How long the oldest of them has waited, in milliseconds; 0 when none waits. */
  lagMs(): number;
  /** Whether that of one request does. */
  isWaiting(requestId: string): boolean;
  /** Offers all of them once more; resolves with how many still wait. */
  flush(): Promise<number>;
}

/**
 * Keeps a settlement that the database does not take, and offers it again until it does: the answer is out and has to
 * be paid for. A settlement is done once however often it is offered, so nothing is charged twice.
 */
export function keepSettlements(records: Records, clock: Clock, onFault: ReportFault): KeptSettlements {
  let waiting: SettledRecord[] = [];
  let waitingSinceMs = 0;
  let flushing: Promise<number> | null = null;

  const retryLater = (): void => void clock.schedule(retryMs, () => void flush());
  const flush = (): Promise<number> => (flushing ??= offerAll().finally(() => (flushing = null)));
  const offerAll = async (): Promise<number> => {
    const offered = waiting;
    waiting = [];
    for (const record of offered) {
      try {
        await records.settle(record);
      } catch (error) {
        if (error instanceof StorageError) waiting.push(record);
        else onFault('a kept settlement could not be made', error);
      }
    }
    if (waiting.length > 0) retryLater();
    return waiting.length;
  };

  return {
    open: (record) => records.open(record),
    async settle(record) {
      try {
        await records.settle(record);
      } catch (error) {
        if (!(error instanceof StorageError) || waiting.length >= maxKept) throw error;
        onFault('the database does not take settlements: they are kept and offered again', error);
        if (waiting.push(record) > 1) return;
        waitingSinceMs = clock.monotonicMs();
        retryLater();
      }
    },
    get waiting() {
      return waiting.length;
    },
    lagMs: () => (waiting.length === 0 ? 0 : clock.monotonicMs() - waitingSinceMs),
    isWaiting: (requestId) => waiting.some((record) => record.requestId === requestId),
    flush,
  };
}
