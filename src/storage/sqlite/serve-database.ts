import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { whyDamaged } from './check-file.ts';
import { messageOf, UnitRunner } from './run-unit.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest, Unit } from './thread-messages.ts';
import { busyTimeoutMs, writeCopy, WriterConnection } from './writer-connection.ts';

/** How many units share a commit at the most. */
const maxUnitsPerCommit = 500;

/** What a connection does with the requests of its port. */
interface Connection {
  readonly database: DatabaseSync;
  run(first: number, units: readonly Unit[]): void;
  tend(request: Exclude<ThreadRequest, { readonly kind: 'units' | 'close' }>): void;
  close(toRescue: boolean): ThreadReply;
}

/**
 * Opens one connection to the database, or does the one thing that a copier and a checker are for, and serves what the port
 * asks of it. Units for the writer that have queued up while its last commit ran share the next one: an idle service
 * commits at once, a busy one in batches, and no timer is needed.
 */
export function serveDatabase(port: MessagePort, options: ThreadOptions): void {
  const reply = (message: ThreadReply): void => port.postMessage(message);
  try {
    if (options.role === 'writer') {
      const writer = new WriterConnection(options, reply);
      serve(port, writer, options.posts);
      return reply({ kind: 'opened', files: writer.files });
    }
    if (options.role === 'reader') serve(port, openReader(options, reply), options.posts);
    else if (options.role === 'checker') check(options);
    else copy(options);
    reply({ kind: 'opened', files: null });
    if (options.role !== 'reader') port.close();
  } catch (error) {
    reply({ kind: 'failed', reason: messageOf(error) });
    port.close();
  }
}

function openReader({ path }: ThreadOptions, reply: (message: ThreadReply) => void): Connection {
  // It was overwritten. SQLite deletes the log of an empty file, and the writer's close would then fold it into the file.
  if (statSync(path).size === 0) throw new Error('the database file is empty');
  const database = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  database.exec('SELECT 1 FROM sqlite_schema');
  const runner = new UnitRunner(database, false);
  return {
    database,
    run(first, units) {
      // Each read is answered at once: a look-up must not wait for the page behind it.
      for (const [at, unit] of units.entries())
        reply({ kind: 'results', first: first + at, results: runner.read(unit) });
    },
    tend() {},
    close() {
      database.close();
      return { kind: 'closed', rescued: null, error: null };
    },
  };
}

function check({ path }: ThreadOptions): void {
  const damage = whyDamaged(path);
  if (damage !== null) throw new Error(damage);
}

/**
 * Copies the database. Its log could not be folded back into it meanwhile and has grown: that is done here, or the
 * writer's next commit would do it and hold up everything behind.
 */
function copy({ path, target = '' }: ThreadOptions): void {
  const existing = pathToFileURL(path);
  existing.search = '?mode=rw';
  const database = new DatabaseSync(existing, { timeout: busyTimeoutMs });
  writeCopy(database, target);
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  database.close();
}

function serve(port: MessagePort, connection: Connection, posts?: Int32Array): void {
  const { database } = connection;
  /** The time of the last message with units, in milliseconds since 1970: who sends them has the clock. */
  let nowMs = 0;
  // An integer, as on the other engines: from a number SQLite would make a floating-point one.
  database.function('now_ms', () => BigInt(Math.trunc(nowMs)));
  // Nothing runs beside a unit here: every earlier transaction has ended.
  database.function('transaction_number', () => 0n);
  database.function('oldest_transaction', () => 1n);
  const next = (): ThreadRequest | undefined =>
    receiveMessageOnPort(port)?.message as ThreadRequest | undefined;
  /** Does a request and those behind it; returns false once the connection is closed. */
  const work = (message: ThreadRequest): boolean => {
    let request: ThreadRequest | undefined = message;
    while (request !== undefined) {
      if (request.kind === 'close') {
        port.postMessage(connection.close(request.rescue));
        port.close();
        return false;
      }
      if (request.kind !== 'units') {
        connection.tend(request);
        request = next();
        continue;
      }
      const { first } = request;
      const units: Unit[] = [];
      while (request?.kind === 'units' && units.length < maxUnitsPerCommit) {
        nowMs = request.nowMs;
        units.push(...request.units);
        request = next();
      }
      for (let at = 0; at < units.length; at += maxUnitsPerCommit)
        connection.run(first + at, units.slice(at, at + maxUnitsPerCommit));
      request ??= next();
    }
    return true;
  };
  if (posts === undefined) port.on('message', work);
  else setImmediate(() => waitForRequests(posts, next, work));
  // A thread that is ended takes its connection with it; one in memory has no thread.
  port.on('close', () => {
    if (database.isOpen) database.close();
  });
}

/**
 * Has requests worked on as they come, until one closes the connection. The thread sleeps on the count of posts and not in
 * its event loop: that is woken by five system calls in place of two, and takes a tenth of a request's CPU.
 */
function waitForRequests(
  posts: Int32Array,
  next: () => ThreadRequest | undefined,
  work: (request: ThreadRequest) => boolean,
): void {
  for (let isOpen = true; isOpen;) {
    const seen = Atomics.load(posts, 0);
    const request = next();
    if (request === undefined) Atomics.wait(posts, 0, seen);
    else isOpen = work(request);
  }
}
