import type { Clock } from '../domain/ports/clock.ts';
import { KeyLockedError, StorageError } from '../domain/storage-refusal.ts';
import type { StorageReason } from '../domain/storage-refusal.ts';

/** The duration from which a write under way counts as a fault of the database, in milliseconds. */
const slowMs = 500;

/**
 * The duration from which a write under way may be stuck, in milliseconds: no other write is begun behind it. A busy disk
 * takes a second for a commit now and then: requests wait for that, and only `slow` is shown.
 */
export const stuckMs = 3_000;

/** How many keys are known as locked at a time; beyond that the one that is known longest counts as free. */
const maxLockedKeys = 1_000;

/** Whether the database takes writes, judged by the last ones. */
export interface WriteHealth {
  /** Notes how a write of a key goes that has just begun; returns it. `keyId` is `null` when it is of none. */
  observe<Result>(write: Promise<Result>, keyId: string | null): Promise<Result>;
  /** Why the last write failed, `slow` while one takes too long, `null` when all is well. */
  readonly fault: StorageReason | null;
  /** The error of the last write; `null` when it was made. */
  readonly error: StorageError | null;
  /** Whether the last write failed, or one takes so long that it may never end, and no other one was answered meanwhile. */
  readonly isStuck: boolean;
  /** Whether a write is under way whose end says how the database is: not one that may wait for the lock of its key. */
  readonly isWriting: boolean;
}

/** Judges a database by its writes. `isBroken` says whether it can't be used any more. */
export function watchWrites(clock: Clock, isBroken: () => boolean): WriteHealth {
  let failed: StorageError | null = null;
  let answeredMs = Number.NEGATIVE_INFINITY;
  /** When the writes under way began, in their order, without those of keys that are locked. */
  const underWay = new Set<{ readonly startedMs: number; readonly keyId: string | null }>();
  /** The keys that another session has locked, by their last writes: the next one may have to wait, too. */
  const locked = new Set<string>();
  const oldestMs = (): number => {
    const [oldest] = underWay;
    return oldest === undefined ? 0 : clock.monotonicMs() - oldest.startedMs;
  };
  /** Whether any answer is missing for so long. Others may be made beside a write that waits, as those of other keys. */
  const isSilentFor = (durationMs: number): boolean =>
    oldestMs() > durationMs && clock.monotonicMs() - answeredMs > durationMs;
  /** The other writes of a key that turns out to be locked wait for the same lock, or are about to be refused. */
  const lock = (keyId: string): void => {
    if (locked.has(keyId)) return;
    locked.add(keyId);
    const [longest] = locked;
    if (locked.size > maxLockedKeys && longest !== undefined) locked.delete(longest);
    for (const begun of underWay) if (begun.keyId === keyId) underWay.delete(begun);
  };
  return {
    observe(write, keyId) {
      const begun = { startedMs: clock.monotonicMs(), keyId };
      if (keyId === null || !locked.has(keyId)) underWay.add(begun);
      write.then(
        () => {
          underWay.delete(begun);
          if (keyId !== null) locked.delete(keyId);
          answeredMs = clock.monotonicMs();
          failed = null;
        },
        (error: unknown) => {
          underWay.delete(begun);
          // It says nothing of the writes of other keys: while the calls of one are refused, all others would be, too.
          if (error instanceof KeyLockedError) {
            if (error.isAnswer) answeredMs = clock.monotonicMs();
            if (keyId !== null) lock(keyId);
            return;
          }
          if (keyId !== null) locked.delete(keyId);
          // A database that rejects a unit for its values has answered, and takes others.
          failed = error instanceof StorageError && !error.isPermanent ? error : null;
        },
      );
      return write;
    },
    get fault() {
      if (isBroken()) return 'unavailable';
      if (failed !== null) return failed.reason;
      return oldestMs() > slowMs ? 'slow' : null;
    },
    get error() {
      return failed;
    },
    get isStuck() {
      return isBroken() || failed !== null || isSilentFor(stuckMs);
    },
    get isWriting() {
      return underWay.size > 0;
    },
  };
}
