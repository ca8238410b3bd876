import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { FileIds } from '../database-files.ts';
import { watchFiles, watchLogGrowth } from './file-watch.ts';
import type { FileWatch, LogGrowth } from './file-watch.ts';
import type { ThreadOptions } from './thread-messages.ts';
import { startDatabaseThread } from './thread.ts';
import type { DatabaseThread, StartThread } from './thread.ts';

/** How many units may wait for a commit, and how many reads for their turn; more are refused. */
const maxWaitingUnits = 10_000;
const maxWaitingReads = 2_000;

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  readonly durability: 'normal' | 'full';
  /** Whether a database that was copied to PostgreSQL is opened all the same. */
  readonly allowMigrated?: boolean;
  readonly clock: Clock;
  readonly onFault: ReportFault;
  readonly startThread?: StartThread;
  /** Called before a unit of statements is handed in: what is handed in by then takes effect before it. */
  readonly beforeUnit?: () => void;
  /** Resolves when all that a read has to see is committed. */
  readonly beforeRead?: () => Promise<void>;
}

/** The threads of one database, and the watch over its files. A database in memory has the writer alone. */
interface Threads {
  readonly writer: Writer;
  /** `null` until the database is open. */
  readonly reader: Reader | null;
  readonly watch: FileWatch | null;
  /** `null` for a database in memory. */
  readonly growth: LogGrowth | null;
  /** Makes a copy, whose thread folds the log at its end. */
  whileCopying<Made>(work: () => Promise<Made>): Promise<Made>;
}

/** Starts the writer, and the reader once the database is open. `onLost` gets the reason when it can't be kept in use. */
export function keepThreads(
  file: string,
  { path, durability, allowMigrated = false, clock, onFault, startThread }: SqliteOptions,
  onLost: (reason: Error) => void,
): Threads {
  const start = (role: ThreadOptions['role'], maxWaiting: number): DatabaseThread =>
    startDatabaseThread(
      { role, path: file, name: path, durability, allowMigrated },
      {
        maxWaiting,
        clock,
        start: startThread,
        onDamaged: (error) => watch?.damaged(error),
        onChanged: (change) => watch?.changed(change),
      },
    );
  let reader: Reader | null = null;
  let watch: FileWatch | null = null;
  let copies = 0;
  const growth = watchLogGrowth(file, () => copies > 0, onFault);
  const check = async (): Promise<void> => {
    const thread = start('checker', 0);
    try {
      await thread.opened;
    } finally {
      await thread.close();
    }
  };
  const writer = keepWriter({
    start: () => start('writer', maxWaitingUnits),
    canRestart: () => watch !== null && watch.fault === null && !watch.isDatabaseGone(),
    onOpened(files) {
      if (files === null) return;
      watch?.stop();
      watch = watchFiles(file, files, { clock, onFault, writer: writer.thread, check, growth, onLost });
      reader ??= keepReader(
        () => (watch?.isDatabaseGone() === true ? null : start('reader', maxWaitingReads)),
        clock,
        onFault,
      );
    },
    clock,
    onFault,
  });
  void writer.lost.then(onLost);
  return {
    writer,
    get reader() {
      return reader;
    },
    get watch() {
      return watch;
    },
    growth: file === ':memory:' ? null : growth,
    async whileCopying(work) {
      // Of copies that are made at the same time the last one ends it.
      if (++copies === 1) writer.thread.tell({ kind: 'copying', isCopying: true });
      try {
        return await work();
      } finally {
        if (--copies === 0) writer.thread.tell({ kind: 'copying', isCopying: false });
      }
    },
  };
}

/** A thread that dies within this time after a restart is not started again, in milliseconds. */
const restartWindowMs = 600_000;

/** The thread that writes. It is started again once if it dies. */
interface Writer {
  /** The current thread. */
  readonly thread: DatabaseThread;
  /** Why nothing can be written any more; `null` while it can. */
  readonly broken: Error | null;
  /** Resolves with the reason when a database that was open can't be written any more. */
  readonly lost: Promise<Error>;
  /** Ends the thread, which is no death from now on; resolves with the path of a rescued database. */
  close(rescue: boolean): Promise<string | null>;
}

interface WriterTools {
  readonly start: () => DatabaseThread;
  /** Whether a new thread would open the database of the old one. */
  readonly canRestart: () => boolean;
  readonly onOpened: (files: FileIds | null) => void;
  readonly clock: Clock;
  readonly onFault: ReportFault;
}

/** Keeps a writer thread alive, as far as that is safe. */
function keepWriter({ start, canRestart, onOpened, clock, onFault }: WriterTools): Writer {
  const lost = Promise.withResolvers<Error>();
  let broken: Error | null = null;
  let diedMs = Number.NEGATIVE_INFINITY;
  let wasOpen = false;
  let closing = false;
  let thread = begin();

  function begin(): DatabaseThread {
    const started = start();
    started.opened.then(
      (files) => {
        wasOpen = true;
        onOpened(files);
      },
      () => {},
    );
    void started.ended.then(died);
    return started;
  }
  function died(reason: StorageError): void {
    if (closing) return;
    const nowMs = clock.monotonicMs();
    if (wasOpen && nowMs - diedMs >= restartWindowMs && canRestart()) {
      diedMs = nowMs;
      onFault('the database thread died and is started again', reason);
      thread = begin();
    } else {
      broken = reason;
      if (!wasOpen) return;
      onFault('the database thread died and can not be started again', reason);
      lost.resolve(reason);
    }
  }
  return {
    get thread() {
      return thread;
    },
    get broken() {
      return broken;
    },
    lost: lost.promise,
    async close(rescue) {
      closing = true;
      broken ??= new StorageError('the database is closed', 'closed');
      return thread.close(rescue);
    },
  };
}

/** The delay before a dead thread is started again, in milliseconds; it doubles with every death in a row. */
const firstRestartMs = 100;
const maxRestartMs = 5_000;

/** The age from which a thread's death counts as the first in a row, in milliseconds. */
const soundAgeMs = 60_000;

/** The thread that only reads. It is started again whenever it dies. */
export interface Reader {
  /** The current thread; `null` between a death and the restart. */
  readonly thread: DatabaseThread | null;
  close(): Promise<void>;
}

/** Keeps a reader thread alive. `start` returns `null` while there is no database to read, and is called again later. */
export function keepReader(start: () => DatabaseThread | null, clock: Clock, onFault: ReportFault): Reader {
  let restartMs = firstRestartMs;
  let cancel: (() => void) | null = null;
  let closing = false;
  let thread: DatabaseThread | null = null;
  begin();

  function begin(): void {
    thread = start();
    if (thread === null) return beginLater();
    const startedMs = clock.monotonicMs();
    void thread.ended.then((reason) => {
      thread = null;
      if (closing) return;
      onFault('the thread that reads the database died and is started again', reason);
      if (clock.monotonicMs() - startedMs >= soundAgeMs) restartMs = firstRestartMs;
      beginLater();
    });
  }
  function beginLater(): void {
    cancel = clock.schedule(restartMs, begin);
    restartMs = Math.min(restartMs * 2, maxRestartMs);
  }
  return {
    get thread() {
      return thread;
    },
    async close() {
      closing = true;
      cancel?.();
      await thread?.close();
    },
  };
}
