import { StorageError } from '../../domain/storage-refusal.ts';
import { realDatabasePath } from '../database-files.ts';
import type { Engine } from '../engine.ts';
import { endAllLeases } from '../leases.ts';
import { copyDatabase, removeOldCopies } from './copy.ts';
import type { DatabaseThread } from './thread.ts';
import { keepThreads } from './threads.ts';
import type { SqliteOptions } from './threads.ts';

/**
 * Runs units on SQLite in one thread, and reads in another over a second connection, so that no commit waits for a read.
 * A database in memory has one connection, which does both.
 */
export function createSqliteEngine(options: SqliteOptions): Engine {
  const { clock, onFault, startThread, beforeUnit = () => {}, beforeRead } = options;
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
  const lookUp: Engine['lookUp'] = async (statements) => {
    if (!isFile) return writing().submit(statements);
    await firstOpened;
    if (writer.broken !== null) throw writer.broken;
    const thread = threads.reader?.thread ?? null;
    if (thread === null) throw new StorageError('the thread that reads the database is being restarted');
    return thread.submit(statements);
  };
  return {
    ready,
    lost: lost.promise,
    async run(unit) {
      beforeUnit();
      return writing().submit(unit);
    },
    call: async ({ name }, values) => writing().call(name, values),
    async read(statements) {
      await beforeRead?.();
      return lookUp(statements);
    },
    lookUp,
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
