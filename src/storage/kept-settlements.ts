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
  /** By request; each stays until it is made, so that nobody takes its record for one without a request. */
  const waiting = new Map<string, SettledRecord>();
  let waitingSinceMs = 0;
  let flushing: Promise<number> | null = null;

  const retryLater = (): void => void clock.schedule(retryMs, () => void flush());
  const flush = (): Promise<number> => (flushing ??= offerAll().finally(() => (flushing = null)));
  const offerAll = async (): Promise<number> => {
    for (const record of waiting.values()) {
      try {
        await records.settle(record);
        waiting.delete(record.requestId);
      } catch (error) {
        if (error instanceof StorageError) continue;
        waiting.delete(record.requestId);
        onFault('a kept settlement could not be made', error);
      }
    }
    if (waiting.size > 0) retryLater();
    return waiting.size;
  };

  return {
    open: (record) => records.open(record),
    async settle(record) {
      try {
        await records.settle(record);
      } catch (error) {
        if (!(error instanceof StorageError) || waiting.size >= maxKept) throw error;
        onFault('the database does not take settlements: they are kept and offered again', error);
        if (waiting.size === 0) {
          waitingSinceMs = clock.monotonicMs();
          if (flushing === null) retryLater();
        }
        waiting.set(record.requestId, record);
      }
    },
    get waiting() {
      return waiting.size;
    },
    lagMs: () => (waiting.size === 0 ? 0 : clock.monotonicMs() - waitingSinceMs),
    isWaiting: (requestId) => waiting.has(requestId),
    flush,
  };
}
