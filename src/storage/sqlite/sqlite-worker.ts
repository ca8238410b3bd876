import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { checkBeforeUse, explainOpenFailure, whyDamaged } from './check-file.ts';
import { idsOf } from './file-ids.ts';
import type { FileIds } from './file-ids.ts';
import { MainFile } from './main-file.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest, Unit, UnitResult } from './thread-messages.ts';
import { migrate } from './migrate.ts';
import { makeNewFile } from './new-file.ts';
import { lockOwnership } from './owner-lock.ts';
import { rescue, writeCopy } from './rescue.ts';
import { UnitRunner, messageOf } from './run-unit.ts';
import { WriteAheadLog } from './write-ahead-log.ts';

/**
 * A thread with one connection to the database, so that waiting for the disk never holds up a stream. Units for the
 * writer that have queued up while its last commit ran share the next one: an idle service commits at once, a busy
 * one in batches, and no timer is needed.
 */

/** How long another process may hold the database before a statement gives up, in milliseconds. */
const busyTimeoutMs = 5_000;

/** How many units share a commit at the most. */
const maxUnitsPerCommit = 500;

/** What becomes of a unit once the file was overwritten: SQLITE_CORRUPT. */
const overwritten: UnitResult = {
  kind: 'failed',
  error: 'the database file was overwritten while it was open',
  code: 11,
};

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
const reply = (message: ThreadReply): void => port.postMessage(message);

const options = workerData as ThreadOptions;
const { role, path, name, durability, target = '' } = options;
/** Kept open for its lock: closing it would release that. */
let ownerLock: DatabaseSync | null = null;
let files: FileIds | null = null;
/** The log of the writer's file; `null` in other threads, and in memory. */
let log: WriteAheadLog | null = null;
let isOverwritten = false;
/** The time of the last message with units, in milliseconds since 1970: the main thread has the clock. */
let nowMs = 0;

try {
  if (role === 'writer') {
    const database = openForWriting();
    serve(database, (runner, first, units) => {
      if (isOverwritten) return reply({ kind: 'results', first, results: units.map(() => overwritten) });
      reply({ kind: 'results', first, results: runner.commit(units) });
      if (log?.isDueAfter(units.length) === true) fold(log);
    });
  } else if (role === 'reader') {
    const database = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
    database.exec('SELECT 1 FROM sqlite_schema');
    serve(database, (runner, first, units) => {
      // Each read is answered at once: a look-up must not wait for the page behind it.
      for (const [at, unit] of units.entries())
        reply({ kind: 'results', first: first + at, results: runner.read(unit) });
    });
  } else if (role === 'checker') {
    const damage = whyDamaged(path);
    if (damage !== null) throw new Error(damage);
  } else copy();
  reply({ kind: 'opened', files });
} catch (error) {
  reply({ kind: 'failed', reason: messageOf(error) });
  port.close();
}

function openForWriting(): DatabaseSync {
  const isFile = path !== ':memory:';
  if (isFile) ownerLock = lockOwnership(path);
  try {
    return openDatabase(isFile);
  } catch (error) {
    throw new Error(explainOpenFailure(error, name), { cause: error });
  }
}

function openDatabase(isFile: boolean): DatabaseSync {
  if (isFile) makeNewFile(path, name);
  // Before SQLite opens it: closing a descriptor later would release SQLite's locks.
  const file = isFile ? new MainFile(path) : null;
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  checkBeforeUse(database, options);
  // References are not looked up with each row, which costs a twentieth of a settlement, and PostgreSQL's tables have none:
  // every statement takes them from the row that it refers to.
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF; PRAGMA synchronous = ${durability}`);
  migrate(database);
  if (file === null) return database;
  files = idsOf(path);
  log = new WriteAheadLog(database, path, file);
  return database;
}

/**
 * Copies the database. Its log could not be folded back into it meanwhile and has grown: that is done here, or the
 * writer's next commit would do it and hold up everything behind.
 */
function copy(): void {
  const existing = pathToFileURL(path);
  existing.search = '?mode=rw';
  const database = new DatabaseSync(existing, { timeout: busyTimeoutMs });
  writeCopy(database, target);
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  database.close();
}

function serve(
  database: DatabaseSync,
  work: (runner: UnitRunner, first: number, units: readonly Unit[]) => void,
): void {
  // An integer, as on the other engines: from a number SQLite would make a floating-point one.
  database.function('now_ms', () => BigInt(Math.trunc(nowMs)));
  // Nothing runs beside a unit here: every earlier transaction has ended.
  database.function('transaction_number', () => 0n);
  database.function('oldest_transaction', () => 1n);
  const runner = new UnitRunner(database, role === 'writer' && durability === 'full');
  port?.on('message', (message: ThreadRequest) => {
    let request: ThreadRequest | undefined = message;
    while (request !== undefined) {
      if (request.kind === 'close') return close(database, request.rescue);
      if (request.kind !== 'units') {
        tend(request);
        request = nextRequest();
        continue;
      }
      const { first } = request;
      const units: Unit[] = [];
      while (request?.kind === 'units' && units.length < maxUnitsPerCommit) {
        nowMs = request.nowMs;
        units.push(...request.units);
        request = nextRequest();
      }
      for (let at = 0; at < units.length; at += maxUnitsPerCommit)
        work(runner, first + at, units.slice(at, at + maxUnitsPerCommit));
      request ??= nextRequest();
    }
  });
}

function nextRequest(): ThreadRequest | undefined {
  return port === null ? undefined : (receiveMessageOnPort(port)?.message as ThreadRequest | undefined);
}

/** Does what is asked of the writer beside units. */
function tend(request: Exclude<ThreadRequest, { readonly kind: 'units' | 'close' }>): void {
  if (request.kind === 'relock') return relock();
  if (log === null) return;
  if (request.kind === 'accept') return log.accept();
  if (request.kind === 'copying') return log.copied(request.isCopying);
  if (isSound(log) && log.isLong) log.fold();
}

/** Folds the log into the database's file, unless that is not the one that it belongs to. */
function fold(written: WriteAheadLog): void {
  if (isSound(written)) written.fold();
}

/** Whether nothing else has changed the database's file; otherwise it is told. */
function isSound(written: WriteAheadLog): boolean {
  const change = written.change();
  if (change === 'none') return true;
  if (change === 'overwritten') isOverwritten = true;
  reply({ kind: 'changed', change });
  return false;
}

/** Locks the file that is at the lock's path now, where the one that was locked before is gone. */
function relock(): void {
  try {
    const before = ownerLock;
    ownerLock = lockOwnership(path);
    before?.close();
    reply({ kind: 'relocked', relocked: idsOf(path) });
  } catch (error) {
    reply({ kind: 'relocked', relocked: messageOf(error) });
  }
}

function close(database: DatabaseSync, toRescue: boolean): void {
  let rescued: string | null = null;
  let error: string | null = null;
  try {
    if (toRescue && files !== null) rescued = rescue(database, path, files);
    else if (log === null) database.close();
    else if (isOverwritten || log.change() === 'overwritten') log.abandon();
    else log.close();
  } catch (failure) {
    error = messageOf(failure);
  }
  ownerLock?.close();
  reply({ kind: 'closed', rescued, error });
  port?.close();
}
