import { DatabaseSync } from 'node:sqlite';
import { checkBeforeUse, explainOpenFailure } from './check-file.ts';
import { idsOf } from './file-ids.ts';
import type { FileIds } from './file-ids.ts';
import { MainFile } from './main-file.ts';
import { migrate } from './migrate.ts';
import { makeNewFile } from './new-file.ts';
import { lockOwnership } from './owner-lock.ts';
import { rescue } from './rescue.ts';
import { messageOf, UnitRunner } from './run-unit.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest, Unit, UnitResult } from './thread-messages.ts';
import { WriteAheadLog } from './write-ahead-log.ts';

/** How long another process may hold the database before a statement gives up, in milliseconds. */
export const busyTimeoutMs = 5_000;

/** What becomes of a unit once the file was overwritten: SQLITE_CORRUPT. */
const overwritten: UnitResult = {
  kind: 'failed',
  error: 'the database file was overwritten while it was open',
  code: 11,
};

/** The connection that owns the database and changes it. */
export class WriterConnection {
  readonly database: DatabaseSync;
  /** The files of the database; `null` in memory. */
  readonly files: FileIds | null;
  readonly #options: ThreadOptions;
  readonly #reply: (message: ThreadReply) => void;
  readonly #runner: UnitRunner;
  /** `null` in memory. */
  readonly #log: WriteAheadLog | null;
  /** Kept open for its lock: closing it would release that. */
  #ownerLock: DatabaseSync | null;
  #isOverwritten = false;

  /** Opens the database, and makes it where there is none. Throws if it can't be used, with what to do. */
  constructor(options: ThreadOptions, reply: (message: ThreadReply) => void) {
    const { path, name } = options;
    this.#options = options;
    this.#reply = reply;
    const isFile = path !== ':memory:';
    this.#ownerLock = isFile ? lockOwnership(path) : null;
    let database: DatabaseSync | null = null;
    try {
      if (isFile) makeNewFile(path, name);
      // Before SQLite opens it: closing a descriptor later would release SQLite's locks.
      const file = isFile ? new MainFile(path) : null;
      database = openDatabase(options);
      this.database = database;
      this.files = file === null ? null : idsOf(path);
      this.#log = file === null ? null : new WriteAheadLog(database, path, file);
    } catch (error) {
      // Before its lock: with that, another process could open the file.
      database?.close();
      this.#ownerLock?.close();
      throw new Error(explainOpenFailure(error, name), { cause: error });
    }
    this.#runner = new UnitRunner(this.database, options.durability === 'full');
  }

  /** Commits units, and replies with their results; `first` is the number of the first one. */
  run(first: number, units: readonly Unit[]): void {
    if (this.#isOverwritten)
      return this.#reply({ kind: 'results', first, results: units.map(() => overwritten) });
    this.#reply({ kind: 'results', first, results: this.#runner.commit(units) });
    const log = this.#log;
    if (log?.isDueAfter(units.length) === true && this.#isSound(log)) log.fold();
  }

  /** Does what is asked of the writer beside units. */
  tend(request: Exclude<ThreadRequest, { readonly kind: 'units' | 'close' }>): void {
    if (request.kind === 'relock') return this.#relock();
    const log = this.#log;
    if (log === null) return;
    if (request.kind === 'accept') return log.accept();
    if (request.kind === 'copying') return log.copied(request.isCopying);
    if (this.#isSound(log) && log.isLong) log.fold();
  }

  /** Closes the database; with `toRescue` it is written to a new file first. Returns the reply for that. */
  close(toRescue: boolean): ThreadReply {
    let rescued: string | null = null;
    let error: string | null = null;
    const { database, files } = this;
    const log = this.#log;
    try {
      if (toRescue && files !== null) rescued = rescue(database, this.#options.path, files);
      else if (log === null) database.close();
      else if (this.#isOverwritten || log.change() === 'overwritten') log.abandon();
      else log.close();
    } catch (failure) {
      error = messageOf(failure);
    }
    this.#ownerLock?.close();
    return { kind: 'closed', rescued, error };
  }

  /** Whether nothing else has changed the database's file; otherwise it is told. The log is folded only then. */
  #isSound(log: WriteAheadLog): boolean {
    const change = log.change();
    if (change === 'none') return true;
    if (change === 'overwritten') this.#isOverwritten = true;
    this.#reply({ kind: 'changed', change });
    return false;
  }

  /** Locks the file that is at the lock's path now, where the one that was locked before is gone. */
  #relock(): void {
    const { path } = this.#options;
    try {
      const before = this.#ownerLock;
      this.#ownerLock = lockOwnership(path);
      before?.close();
      this.#reply({ kind: 'relocked', relocked: idsOf(path) });
    } catch (error) {
      this.#reply({ kind: 'relocked', relocked: messageOf(error) });
    }
  }
}

function openDatabase(options: ThreadOptions): DatabaseSync {
  const database = new DatabaseSync(options.path, { timeout: busyTimeoutMs });
  try {
    checkBeforeUse(database, options);
    // References are not looked up with each row, which costs a twentieth of a settlement, and PostgreSQL's tables have none:
    // every statement takes them from the row that it refers to.
    database.exec(
      `PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF; PRAGMA synchronous = ${options.durability}`,
    );
    migrate(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
