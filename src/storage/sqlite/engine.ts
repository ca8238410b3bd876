import { StorageError } from '../../domain/storage-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { Engine } from '../engine.ts';
import { endAllLeases } from '../leases/lease-statements.ts';
import { realDatabasePath } from '../private-files.ts';
import { copyDatabase, removeOldCopies } from './copy.ts';
import { watchFiles } from './file-watch.ts';
import type { FileWatch } from './file-watch.ts';
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
    copy: async () => (isFile ? copyDatabase(file, clock, startThread) : null),
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
}

/** Starts the writer, and the reader once the database is open. `onLost` gets the reason when it can't be kept in use. */
function keepThreads(
  file: string,
  { path, durability, clock, onFault, startThread }: SqliteOptions,
  onLost: (reason: Error) => void,
): Threads {
  const start = (role: ThreadOptions['role'], maxWaiting: number): DatabaseThread =>
    startDatabaseThread(
      { role, path: file, name: path, durability },
      { maxWaiting, clock, start: startThread },
    );
  let reader: Reader | null = null;
  let watch: FileWatch | null = null;
  const writer = keepWriter({
    start: () => start('writer', maxWaitingUnits),
    canRestart: () => watch !== null && watch.fault === null && !watch.isDatabaseGone(),
    onOpened(files) {
      if (files === null) return;
      watch?.stop();
      watch = watchFiles(file, files, { clock, onFault, relock: () => writer.thread.relock(), onLost });
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
  };
}
