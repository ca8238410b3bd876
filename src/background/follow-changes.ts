import { TimeLimit } from '../domain/time-limit.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import type { FoundChanges, SharedChanges } from '../domain/ports/shared-changes.ts';
import { StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { repeatTask } from './repeat.ts';
import type { Task, TaskPorts } from './repeat.ts';

/** The pause between two reads of the changes, in milliseconds. */
const pollMs = 1_000;

/**
 * How old the last read of the changes may be while cached keys are used, in milliseconds: so long may a revoked key be
 * valid on another process. A read that takes longer has failed.
 */
export const maxUnconfirmedMs = 2_000;

/** What follows the changes, in this process. */
export interface ChangeListeners {
  readonly keys: {
    /** Empties the cache of keys. */
    forgetAll(): void;
    /** Confirms that what is cached was still stored at a time, on the monotonic clock. */
    confirm(atMs: number): void;
  };
  /** The requests that run in this process. */
  readonly running: Pick<RunningRequests, 'cancel'>;
}

/**
 * Follows what other processes change in a shared database: empties the cache of keys when keys have changed, and stops the
 * requests that were cancelled. A successful read confirms the cached keys as of its beginning. After a read that failed the
 * count of changes may be that of another database, as after a failover, so the next success empties the cache.
 */
export function followChanges(
  changes: SharedChanges,
  { keys, running }: ChangeListeners,
  ports: TaskPorts,
): Pick<Task, 'stop'> {
  const { clock, onFault } = ports;
  const failure = 'changes by other processes could not be read';
  const readFailed = sumFaults(failure, onFault, clock);
  const writeFailed = sumFaults('cancellations by other processes could not be removed', onFault, clock);
  const limit = new TimeLimit(
    maxUnconfirmedMs,
    clock,
    () => new StorageError('the database takes too long to say what has changed', 'slow'),
  );
  let seen: number | null = null;
  let acknowledging: Promise<void> | null = null;

  const { signal, stop } = repeatTask(ports, { firstMs: 0, delayMs: pollMs, failure }, async () => {
    const sentMs = clock.monotonicMs();
    try {
      const found = await limit.bound(() => changes.find());
      if (found.keyChanges !== seen) keys.forgetAll();
      seen = found.keyChanges;
      keys.confirm(sentMs);
      for (const requestId of found.cancelled) await running.cancel(requestId);
      // Not awaited: a write may wait for locks, and the next read must not.
      if (found.cancelled.length > 0 || found.lacksName) acknowledging ??= acknowledge(found);
    } catch (error) {
      seen = null;
      if (!signal.aborted) readFailed(error);
    }
  });
  const acknowledge = async (found: FoundChanges): Promise<void> => {
    try {
      await changes.acknowledge(found);
    } catch (error) {
      // What is not removed is found again, and cancelling it again changes nothing.
      if (!signal.aborted) writeFailed(error);
    } finally {
      acknowledging = null;
    }
  };
  return {
    async stop() {
      await stop();
      await acknowledging;
    },
  };
}
