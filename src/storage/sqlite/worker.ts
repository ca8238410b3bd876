import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { createHash } from 'node:crypto';
import type { Row, Statement } from '../engine.ts';
import { migrations } from '../migrations/migrations.ts';
import type { Migration } from '../migrations/migrations.ts';
import type { UnitResult, WorkerOptions, WorkerReply, WorkerRequest } from './messages.ts';

/**
 * The one thread that touches the database file, so that waiting for the disk never holds up a stream. Units
 * that have queued up while the last commit ran share the next one: an idle service commits at once, a busy
 * one in batches, and no timer is needed.
 */

/** How long another process may hold the database before a statement gives up, in milliseconds. */
const busyTimeoutMs = 5_000;

/** How long the process before may take to let go of the database, in milliseconds. */
const ownerTimeoutMs = 2_000;

/** How many units share a commit at the most. */
const maxUnitsPerCommit = 500;

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
/** Held, not used: letting go of it would let go of the lock. */
let ownerLock: DatabaseSync | null = null;

const reply = (message: WorkerReply): void => port.postMessage(message);

try {
  serve(openDatabase(workerData as WorkerOptions));
  reply({ opened: true });
} catch (error) {
  reply({ failed: error instanceof Error ? error.message : String(error) });
}

function openDatabase({ path, durability }: WorkerOptions): DatabaseSync {
  own(path);
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA synchronous = ${durability}`);
  migrate(database);
  return database;
}

/**
 * Two processes on one file would each allow a key its whole limits, and each would take the other's running
 * requests for lost. So the file has one owner, told by a lock that the system gives back when a process dies.
 */
function own(path: string): void {
  if (path === ':memory:') return;
  const lock = new DatabaseSync(`${path}-owner`, { timeout: ownerTimeoutMs });
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch {
    throw new Error('another textgate process is using it');
  }
  ownerLock = lock;
}

/** Brings the schema up to date. A database that another version has changed differently is refused. */
function migrate(database: DatabaseSync): void {
  database.exec(
    'CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)',
  );
  const done = new Map(
    database
      .prepare('SELECT number, checksum FROM migrations')
      .all()
      .map((row) => [Number(row['number']), String(row['checksum'])]),
  );
  if (Math.max(0, ...done.keys()) > migrations.length)
    throw new Error(
      'the database was made by a newer version of textgate: start that version, or use another file',
    );
  for (const migration of migrations) {
    const checksum = createHash('sha256').update(JSON.stringify(migration)).digest('hex');
    const applied = done.get(migration.number);
    if (applied === undefined) apply(database, migration, checksum);
    else if (applied !== checksum)
      throw new Error(`step ${migration.number} of the database's schema is not the one this version knows`);
  }
}

function apply(database: DatabaseSync, { number, name, statements }: Migration, checksum: string): void {
  database.exec('BEGIN IMMEDIATE');
  for (const statement of statements) database.exec(statement);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  database.exec('COMMIT');
}

function serve(database: DatabaseSync): void {
  const prepared = new Map<string, StatementSync>();
  port?.on('message', (first: WorkerRequest) => {
    let request: WorkerRequest | undefined = first;
    while (request !== undefined) {
      const batch: { id: number; unit: readonly Statement[] }[] = [];
      while (request !== undefined && !('close' in request) && batch.length < maxUnitsPerCommit) {
        batch.push(request);
        request = nextRequest();
      }
      if (batch.length > 0) reply({ results: commit(database, prepared, batch) });
      if (request !== undefined && 'close' in request) return close(database);
      request ??= nextRequest();
    }
  });
}

function nextRequest(): WorkerRequest | undefined {
  return port === null ? undefined : (receiveMessageOnPort(port)?.message as WorkerRequest | undefined);
}

function commit(
  database: DatabaseSync,
  prepared: Map<string, StatementSync>,
  batch: readonly { id: number; unit: readonly Statement[] }[],
): readonly UnitResult[] {
  try {
    database.exec('BEGIN IMMEDIATE');
    const results = batch.map(({ id, unit }) => runUnit(database, prepared, id, unit));
    database.exec('COMMIT');
    return results;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    const message = error instanceof Error ? error.message : String(error);
    return batch.map(({ id }) => ({ id, error: message }));
  }
}

/** A savepoint keeps a unit that fails from taking its neighbours of the same commit with it. */
function runUnit(
  database: DatabaseSync,
  prepared: Map<string, StatementSync>,
  id: number,
  unit: readonly Statement[],
): UnitResult {
  database.exec('SAVEPOINT unit');
  try {
    const rows = unit.map((statement) => runStatement(database, prepared, statement));
    database.exec('RELEASE unit');
    return { id, rows };
  } catch (error) {
    if (!database.isTransaction) throw error;
    database.exec('ROLLBACK TO unit; RELEASE unit');
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}

function runStatement(
  database: DatabaseSync,
  prepared: Map<string, StatementSync>,
  { sql, values }: Statement,
): readonly Row[] {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    statement = database.prepare(sql);
    prepared.set(sql, statement);
  }
  return statement.all(...values) as Row[];
}

function close(database: DatabaseSync): void {
  database.close();
  ownerLock?.close();
  reply({ closed: true });
  port?.close();
}
