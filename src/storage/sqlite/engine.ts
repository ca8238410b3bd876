import { StorageError } from '../../domain/storage-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { Engine } from '../engine.ts';
import { endAllLeases } from '../leases.ts';
import { realDatabasePath } from '../private-files.ts';
import { copyDatabase, removeOldCopies } from './copy.ts';
import { watchFiles } from './file-watch.ts';
import type { FileWatch } from './file-watch.ts';
import { watchLogGrowth } from './log-growth.ts';
import type { LogGrowth } from './log-growth.ts';
import type { ThreadOptions } from './thread-messages.ts';
import { keepReader } from './reader.ts';
import type { Reader } from './reader.ts';
import { startDatabaseThread } from './thread.ts';
import type { DatabaseThread, StartThread } from './thread.ts';
import { keepWriter } from './writer.ts';
import type { Writer } from './writer.ts';

/** How many units may wait for a commit, and how many reads for their turn; more are refused. */
const maxWaitingUnits = 10_000;
const maxWaitingReads = 2_000;

interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  readonly durability: 'normal' | 'full';
  /** Whether a database that was copied to PostgreSQL is opened all the same. */
  readonly allowMigrated?: boolean;
  readonly clock: Clock;
  readonly onFault: ReportFault;
  readonly startThread?: StartThread;
}

/**
 * Runs units on SQLite in one thread, and reads in another over a second connection, so that no commit waits for a read.
 * A database in memory has one connection, which does both.
 */
export function createSqliteEngine(options: SqliteOptions): Engine {
  const { clock, onFault, startThread } = options;
  const isFile = options.path !== ':memory:';
  const file = isFile ? realDatabasePath(options.path) : options.path;
  const lost = Promise.withResolvers<Error>();
  const threads = keepThreads(file, options, lost.resolve);
  const { writer } = threads;
  const firstOpened = writer.thread.opened;
  let hasEndedLeases = false;
  /**
   * The first unit of all, offered again in front of the next ones until it is committed: the lock proves every earlier
   * owner dead, so the records that those left open can be closed at once.
   */
  let ending: Promise<void> | null = null;
  const startEnding = (): void => {
    ending = writer.thread.submit([endAllLeases]).then(
      () => void (hasEndedLeases = true),
      () => void (ending = null),
    );
  };
  startEnding();
  const ready = firstOpened.then(async () => {
    if (isFile) removeOldCopies(file);
    await threads.reader?.thread?.opened;
  });
  ready.catch(() => {});

  const writing = (): DatabaseThread => {
    if (writer.broken !== null) throw writer.broken;
    if (!hasEndedLeases && ending === null) startEnding();
    return writer.thread;
  };
  const run: Engine['run'] = async (unit) => writing().submit(unit);
  const read: Engine['read'] = async (statements) => {
    if (!isFile) return run(statements);
    await firstOpened;
    if (writer.broken !== null) throw writer.broken;
    const thread = threads.reader?.thread ?? null;
    if (thread === null) throw new StorageError('the thread that reads the database is being restarted');
    return thread.submit(statements);
  };
  return {
    ready,
    lost: lost.promise,
    run,
    call: async ({ name }, values) => writing().call(name, values),
    read,
    lookUp: read,
    copy: async () => (isFile ? threads.whileCopying(() => copyDatabase(file, clock, startThread)) : null),
    get logBytes() {
      return threads.growth?.bytes ?? null;
    },
    get broken() {
      return writer.broken;
    },
    get impaired() {
      const { reader, watch } = threads;
      if (watch?.fault) return watch.fault;
      return reader !== null && reader.thread === null ? 'the database can not be read right now' : null;
    },
    async close() {
      const { reader, watch } = threads;
      watch?.stop();
      const isGone = writer.broken === null && watch?.isDatabaseGone() === true;
      await reader?.close();
      const rescued = await writer.close(isGone);
      if (rescued !== null) onFault('the database was written back to the disk', rescued);
    },
  };
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
function keepThreads(
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
