import { StorageError } from '../../domain/storage-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { fileIdOf, filesOf, lookUpFileId } from './file-ids.ts';
import type { FileIds } from './file-ids.ts';

/** How often the files of an open database are compared with what is at their paths, in milliseconds. */
const checkMs = 2_000;

/** The watch over the files of an open database: whether they are the ones that the next process would open. */
export interface FileWatch {
  /** The fault that was found; `null` while there is none. */
  readonly fault: string | null;
  /** Whether the open database is not the one at its path; checks now, without waiting for the next interval. */
  isDatabaseGone(): boolean;
  stop(): void;
}

interface FileWatchTools {
  readonly clock: Clock;
  readonly onFault: ReportFault;
  /** Locks the file that is at the lock's path now; resolves with the reason when it can't be locked. */
  readonly relock: () => Promise<FileIds | string>;
  /** Called when the database can't be kept in use. */
  readonly onLost: (reason: Error) => void;
}

/**
 * Watches the files of a database. An open file stays usable when it is deleted, and everything written to it is gone with
 * the process. So a database that was deleted or replaced, or whose log was, is lost: the process has to end, which saves
 * it. Without its lock file a second process could open the database, so a deleted or replaced lock is taken again.
 */
export function watchFiles(
  path: string,
  opened: FileIds,
  { clock, onFault, relock, onLost }: FileWatchTools,
): FileWatch {
  const names = filesOf(path);
  let { lock } = opened;
  let lost: string | null = null;
  let unlocked: string | null = null;
  let stopped = false;
  let cancel = clock.schedule(checkMs, again);

  const lose = (reason: string, file: string): void => {
    lost = reason;
    onFault('the database is lost and the process has to end', `${reason}: ${file}`);
    onLost(new StorageError(`${reason}: ${file}`));
  };
  const checkLock = async (): Promise<void> => {
    const found = await lookUpFileId(names.lock);
    if (found === lock || found === undefined || stopped) return;
    unlocked = 'the lock file of the database was deleted or replaced';
    onFault('the database is locked again', `${unlocked}: ${names.lock}`);
    const relocked = await relock();
    if (typeof relocked === 'string') {
      if (lost === null && !stopped) lose(`${unlocked} and can not be locked: ${relocked}`, names.lock);
    } else {
      lock = relocked.lock;
      unlocked = null;
    }
  };
  const checkDatabase = async (): Promise<void> => {
    for (const name of ['database', 'log'] as const) {
      const found = await lookUpFileId(names[name]);
      if (found === opened[name] || found === undefined || stopped || lost !== null) continue;
      const what = name === 'log' ? 'the write-ahead log of the database' : 'the database file';
      lose(`${what} was ${found === null ? 'deleted' : 'replaced'} while it was open`, names[name]);
    }
  };
  function again(): void {
    void checkLock()
      .then(checkDatabase)
      .finally(() => {
        if (!stopped) cancel = clock.schedule(checkMs, again);
      });
  }
  return {
    get fault() {
      return lost ?? unlocked;
    },
    isDatabaseGone: () => fileIdOf(path) !== opened.database,
    stop() {
      stopped = true;
      cancel();
    },
  };
}
