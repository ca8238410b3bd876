import { existsSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  fileIdOf,
  filesOf,
  idsOf,
  makePrivateFile,
  removeDatabase,
  removeLog,
  sizeOf,
  stampOf,
  syncToDisk,
} from '../database-files.ts';
import type { FileIds } from '../database-files.ts';
import { checkBeforeUse, explainOpenFailure } from './check-file.ts';
import { lockOwnership } from './owner-lock.ts';
import { messageOf, UnitRunner } from './run-unit.ts';
import { migrate } from './schema.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest, Unit, UnitResult } from './thread-messages.ts';
import { MainFile, WriteAheadLog } from './write-ahead-log.ts';

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

/**
 * Makes the file of a database where none of its files is, under the lock of its owner. It appears with its header, so that a
 * start that is killed leaves no empty file. Throws, and changes nothing, where the file is empty or only its log is left: a
 * database was there, and a new one would have none of its keys and balances.
 */
export function makeNewFile(path: string, name: string): void {
  const size = sizeOf(path);
  const { log } = filesOf(path);
  if (size === 0) throw new Error(`its file is empty (0 bytes). ${whatToDo(name)}`);
  if (size !== null) return;
  if ((sizeOf(log) ?? 0) > 0)
    throw new Error(`its file is gone, and only its log is there. ${whatToDo(name)}`);
  const made = `${path}.new-${process.pid}`;
  try {
    makePrivateFile(made);
    const database = new DatabaseSync(made);
    database.exec('PRAGMA journal_mode = WAL');
    database.close();
    renameSync(made, path);
  } finally {
    removeDatabase(made);
  }
}

function whatToDo(name: string): string {
  return `If it had keys and balances, restore a backup:\n  textgate restore BACKUP --to ${name}\nOtherwise, to begin anew, remove ${name} and ${name}-wal`;
}

/**
 * Writes an open database whose file was deleted or replaced back to the disk, and closes it: to its own path if no file
 * is there, else beside it. Returns its new path. Throws when it can't be written, and is lost.
 */
function rescue(database: DatabaseSync, path: string, files: FileIds): string {
  const beside = `${path}.rescued-${stampOf(new Date())}`;
  writeCopy(database, beside);
  database.close();
  // SQLite leaves the log of a moved database where it is.
  if (files.log !== null && fileIdOf(filesOf(path).log) === files.log) removeLog(path);
  if (existsSync(path)) return beside;
  renameSync(beside, path);
  syncToDisk(dirname(path));
  return path;
}

/** Writes a consistent copy to an empty file, and syncs it to the disk before it returns. */
export function writeCopy(database: DatabaseSync, target: string): void {
  makePrivateFile(target);
  database.prepare('VACUUM INTO ?').run(target);
  syncToDisk(target);
}
