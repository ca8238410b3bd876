import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { fileIdOf, filesOf, lockHolders, lookUpFile } from '../database-files.ts';
import type { FileIds } from '../database-files.ts';
import type { DatabaseThread } from './thread.ts';
import { keptBytes } from './write-ahead-log.ts';
import type { FileChange } from './write-ahead-log.ts';

/**
 * How often the files of an open database are compared with what is at their paths, in milliseconds: readiness has to show a
 * change within a second.
 */
const checkMs = 500;

/**
 * How long a database that was found sound, after another program had written its file, is not checked again, in milliseconds:
 * a check reads all of it.
 */
const soundMs = 600_000;

/** The watch over the files of an open database: whether they are the ones that the next process would open. */
export interface FileWatch {
  /** The fault that was found; `null` while there is none. */
  readonly fault: string | null;
  /** Whether the open database is not the one at its path; checks now, without waiting for the next interval. */
  isDatabaseGone(): boolean;
  /** Takes what the writer found: something else has changed the database's file. */
  changed(change: Exclude<FileChange, 'none'>): void;
  /** Takes an error that shows damage. */
  damaged(error: Error): void;
  stop(): void;
}

interface FileWatchTools {
  readonly clock: Clock;
  readonly onFault: ReportFault;
  readonly writer: Pick<DatabaseThread, 'relock' | 'submit' | 'tell'>;
  /** Rejects with the damage of the database. */
  readonly check: () => Promise<void>;
  readonly growth: LogGrowth;
  /** Called when the database can't be kept in use. */
  readonly onLost: (reason: Error) => void;
}

/**
 * Watches the files of a database. An open file stays usable when it is deleted, and everything written to it is gone with
 * the process. So a database that was deleted or replaced, or whose log was, is lost: the process has to end, which saves
 * it. One that was overwritten is lost, too, and can't be saved: nothing more is written, so that the file that is there now
 * stays whole. Without its lock file a second process could open the database, so a deleted or replaced lock is taken again.
 */
export function watchFiles(
  path: string,
  opened: FileIds,
  { clock, onFault, writer, check, growth, onLost }: FileWatchTools,
): FileWatch {
  const names = filesOf(path);
  let { lock } = opened;
  let lost: string | null = null;
  let unlocked: string | null = null;
  let state = '';
  let stopped = false;
  let cancel = clock.schedule(checkMs, again);

  const lose = (reason: string, detail: string): void => {
    if (lost !== null || stopped) return;
    lost = reason;
    onFault('the database is lost and the process has to end', `${reason}: ${detail}`);
    onLost(new StorageError(`${reason}: ${detail}`));
  };
  const content = judgeContent(path, { clock, onFault, writer, check, lose });
  const checkLock = async (): Promise<void> => {
    const found = await lookUpFile(names.lock);
    if (found === undefined || (found?.id ?? null) === lock || stopped) return;
    unlocked = 'the lock file of the database was deleted or replaced';
    onFault('the database is locked again', `${unlocked}: ${names.lock}`);
    const relocked = await writer.relock();
    if (typeof relocked === 'string') {
      lose(`${unlocked} and can not be locked: ${relocked}`, names.lock);
    } else {
      lock = relocked.lock;
      unlocked = null;
    }
  };
  const checkDatabase = async (): Promise<void> => {
    for (const name of ['database', 'log'] as const) {
      const found = await lookUpFile(names[name]);
      if (found === undefined || stopped) continue;
      const what = name === 'log' ? 'the write-ahead log of the database' : 'the database file';
      if ((found?.id ?? null) !== opened[name]) {
        // A writer that died has folded its log, and deleted it: its successor opens a new one.
        if (name === 'log' && !(await isAnswering(writer))) return;
        lose(`${what} was ${found === null ? 'deleted' : 'replaced'} while it was open`, names[name]);
      } else if (name === 'log') {
        growth.note(found?.bytes ?? 0);
        if (growth.bytes > keptBytes) writer.tell({ kind: 'look' });
      } else if (found !== null && found.state !== state) {
        state = found.state;
        writer.tell({ kind: 'look' });
      }
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
      return lost ?? unlocked ?? content.unchecked;
    },
    isDatabaseGone: () => fileIdOf(path) !== opened.database,
    changed: content.changed,
    damaged: content.damaged,
    stop() {
      stopped = true;
      cancel();
    },
  };
}

/** Whether the writer lives: one that has ended rejects what it is asked. */
async function isAnswering(writer: Pick<DatabaseThread, 'submit'>): Promise<boolean> {
  return writer.submit([]).then(
    () => true,
    () => false,
  );
}

interface ContentTools extends Pick<FileWatchTools, 'clock' | 'onFault' | 'writer' | 'check'> {
  readonly lose: (reason: string, detail: string) => void;
}

/** Judges changes of the file's content, and errors that show damage. `unchecked` is said while a changed file is checked. */
function judgeContent(path: string, { clock, onFault, writer, check, lose }: ContentTools) {
  let unchecked: string | null = null;
  let soundUntilMs = Number.NEGATIVE_INFINITY;
  const damaged: FileWatch['damaged'] = ({ message }) =>
    lose(
      'the database is damaged',
      `${message}. Restore a backup once the process has ended:\n  textgate restore BACKUP --to ${path}`,
    );
  const checkChanged = async (): Promise<void> => {
    unchecked = 'the database file was written by another program, and is being checked';
    onFault('the database file was written by another program', 'its structure is checked');
    try {
      await check();
      soundUntilMs = clock.monotonicMs() + soundMs;
      writer.tell({ kind: 'accept' });
      unchecked = null;
    } catch (error) {
      damaged(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const changed: FileWatch['changed'] = (change) => {
    if (change === 'overwritten')
      lose(
        'the database file was overwritten while it was open',
        `${path}. It stays as it is now; what was committed since it was copied is lost, and its log is kept as ${filesOf(path).log}.overwritten-<time>`,
      );
    else if (clock.monotonicMs() < soundUntilMs) writer.tell({ kind: 'accept' });
    else if (unchecked === null) void checkChanged();
  };
  return {
    get unchecked() {
      return unchecked;
    },
    changed,
    damaged,
  };
}

/** The size of a write-ahead log that is reported, in bytes; without a reader that holds it up it has some 4 MB. */
const reportedBytes = 67_108_864;

/** The bytes of the log's index that its readers lock (https://sqlite.org/walformat.html). */
const firstReaderByte = 123;
const lastReaderByte = 127;

/** The watch over the size of a write-ahead log. */
export interface LogGrowth {
  /** The size at the last look. */
  readonly bytes: number;
  note(bytes: number): void;
}

/** Reports a log that can't be folded into the database at `path`, once each time that it becomes so long, with the cause. */
export function watchLogGrowth(path: string, isCopying: () => boolean, onFault: ReportFault): LogGrowth {
  let bytes = 0;
  let isReported = false;
  return {
    get bytes() {
      return bytes;
    },
    note(found) {
      bytes = found;
      if (bytes < reportedBytes) isReported = false;
      else if (!isReported) {
        isReported = true;
        onFault(
          'the write-ahead log of the database keeps growing',
          `it has ${Math.round(bytes / 1_000_000)} MB: ${isCopying() ? 'a backup is being made, after which it shrinks' : describeReaders(path)}`,
        );
      }
    },
  };
}

function describeReaders(path: string): string {
  const ids = lockHolders(`${path}-shm`, (byte) => byte >= firstReaderByte && byte <= lastReaderByte);
  return ids.length === 0
    ? 'something has read the database for long, such as another program that has the file open. When it ends, the log shrinks'
    : `another program reads the database (process id ${ids.join(', ')}). When it ends its transaction, the log shrinks`;
}
