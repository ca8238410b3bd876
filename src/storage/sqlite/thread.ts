import { MessageChannel } from 'node:worker_threads';
import type { Clock } from '../../domain/ports/clock.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { startThread } from '../../shared/thread-file.ts';
import type { FileIds } from '../database-files.ts';
import type { FixedUnitName, ResultRow, Results, SqlValue, Statement } from '../engine.ts';
import type { ThreadOptions, ThreadReply, ThreadRequest } from './thread-messages.ts';
import { WaitingUnits } from './waiting-units.ts';
import type { FileChange } from './write-ahead-log.ts';

/** The part of a worker thread that is used here. */
interface ThreadPort {
  postMessage(request: ThreadRequest): void;
  on(event: 'message', listener: (reply: ThreadReply) => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'exit', listener: () => void): unknown;
  terminate(): Promise<unknown>;
}

/** Starts a thread. Tests pass their own, to end threads at a moment of their choice. */
export type StartThread = (options: ThreadOptions) => ThreadPort;

/** One life of a database thread, from its start to its end. */
export interface DatabaseThread {
  /** Resolves with the files once the database is open; rejects with the reason when it can't be opened. */
  readonly opened: Promise<FileIds | null>;
  /** Resolves with the reason when the thread has ended, for any cause; the units that waited were rejected before. */
  readonly ended: Promise<StorageError>;
  submit(unit: readonly Statement[]): Promise<Results>;
  /** Runs a fixed unit in line with the others. */
  call(name: FixedUnitName, values: readonly SqlValue[]): Promise<ResultRow>;
  /** Locks the lock file anew; resolves with the files as they are now, or with why it could not be locked. */
  relock(): Promise<FileIds | string>;
  /** Has the writer do something that is not answered. */
  tell(request: WriterTask): void;
  /**
   * Closes the database once every unit handed in is done. With `rescue` it is written to a new file first: resolves
   * with the path of that file. Rejects when the database could not be written or closed.
   */
  close(rescue?: boolean): Promise<string | null>;
}

/** What a thread is used with. */
interface ThreadTools {
  /** How many units wait for it at the most; more are refused, which bounds the memory they take. */
  readonly maxWaiting: number;
  readonly clock: Pick<Clock, 'now'>;
  readonly start?: StartThread | undefined;
  /** Called when the database turns out to be damaged. */
  readonly onDamaged?: (error: StorageError) => void;
  /** Called when something else has changed the database's file. */
  readonly onChanged?: (change: Exclude<FileChange, 'none'>) => void;
}

/** What the writer is told, and does not answer, or only if something is wrong. */
type WriterTask = Extract<ThreadRequest, { readonly kind: 'look' | 'accept' | 'copying' }>;

/** Starts a thread on a database. Its SQL has the function `now_ms()`: the time by the clock at which a unit was sent. */
export function startDatabaseThread(
  options: ThreadOptions,
  { maxWaiting, clock, start = startWorker, onDamaged, onChanged }: ThreadTools,
): DatabaseThread {
  const opened = Promise.withResolvers<FileIds | null>();
  const ended = Promise.withResolvers<StorageError>();
  const closed = Promise.withResolvers<string | null>();
  let relocked = Promise.withResolvers<FileIds | string>();
  let over: StorageError | null = null;
  let rescuing = false;

  const worker = start(options);
  const post = (request: ThreadRequest): void => worker.postMessage(request);
  const units = new WaitingUnits(maxWaiting, post, () => clock.now(), onDamaged);
  const end = (reason: string): void => {
    if (over !== null) return;
    const error = new StorageError(reason);
    over = error;
    units.end(error);
    opened.reject(error);
    relocked.resolve(reason);
    // The database that was to be rescued is on no disk: this close has failed.
    if (rescuing) closed.reject(new StorageError(`the database could not be written back: ${reason}`));
    else closed.resolve(null);
    ended.resolve(error);
  };
  let exitReason = 'the database thread ended';
  const abort = (reason: string): void => {
    exitReason = reason;
    units.end(new StorageError(reason));
    void worker.terminate();
  };
  const onRelocked = (files: FileIds | string): void => relocked.resolve(files);
  const life: ThreadLife = { units, opened, closed, end, abort, onRelocked, onChanged };
  worker.on('message', (reply: ThreadReply) => receive(reply, options.name, life));
  worker.on('error', (error) => end(`the database thread failed: ${String(error)}`));
  worker.on('exit', () => end(exitReason));
  for (const promise of [opened.promise, closed.promise]) promise.catch(() => {});

  return {
    opened: opened.promise,
    ended: ended.promise,
    submit: (statements) => units.handIn({ kind: 'statements', statements }),
    call: (name, values) => units.handIn({ kind: 'fixed', name, values }),
    async relock() {
      if (over !== null) return over.message;
      relocked = Promise.withResolvers();
      post({ kind: 'relock' });
      return relocked.promise;
    },
    tell(request) {
      if (over === null) post(request);
    },
    async close(rescue = false) {
      if (over === null) {
        rescuing = rescue;
        units.flush();
        post({ kind: 'close', rescue });
      }
      try {
        return await closed.promise;
      } finally {
        await worker.terminate();
      }
    },
  };
}

/** What the replies of a thread decide. */
interface ThreadLife {
  readonly units: WaitingUnits;
  readonly opened: PromiseWithResolvers<FileIds | null>;
  readonly closed: PromiseWithResolvers<string | null>;
  readonly onRelocked: (relocked: FileIds | string) => void;
  readonly onChanged: ThreadTools['onChanged'];
  readonly end: (reason: string) => void;
  /** Ends a thread that runs: the next one can lock the database file only after its exit. */
  readonly abort: (reason: string) => void;
}

function receive(
  reply: ThreadReply,
  name: string,
  { units, opened, closed, onRelocked, onChanged, end, abort }: ThreadLife,
): void {
  switch (reply.kind) {
    case 'results':
      if (!units.settle(reply.first, reply.results)) abort('the database thread answered out of order');
      return;
    case 'opened':
      return opened.resolve(reply.files);
    case 'failed':
      return end(`the database ${name} can't be opened: ${reply.reason}`);
    case 'relocked':
      return onRelocked(reply.relocked);
    case 'changed':
      return onChanged?.(reply.change);
    case 'closed':
      if (reply.error === null) return closed.resolve(reply.rescued);
      return closed.reject(new StorageError(`the database could not be closed: ${reply.error}`));
  }
}

function startWorker(options: ThreadOptions): ThreadPort {
  if (options.path === ':memory:') return serveHere(options);
  const posts = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const thread = startThread(import.meta.url, 'sqlite-worker', {
    workerData: { ...options, posts } satisfies ThreadOptions,
    name: `textgate-sqlite-${options.role}`,
    // The descriptor of a writer that dies: closing it would release the locks that the reader has on the file.
    trackUnmanagedFds: false,
  });
  const post = thread.postMessage.bind(thread);
  return Object.assign(thread, {
    postMessage(request: ThreadRequest) {
      post(request);
      Atomics.add(posts, 0, 1);
      Atomics.notify(posts, 0);
    },
  });
}

/**
 * Serves a database in memory in the thread of its caller: it never waits for a disk, and a thread would take 25 ms of CPU to
 * start.
 */
export function serveHere(options: ThreadOptions): ThreadPort {
  const { port1: near, port2: far } = new MessageChannel();
  let isEnded = false;
  void import('./serve-database.ts').then(
    ({ serveDatabase }) => {
      if (!isEnded) serveDatabase(far, options);
    },
    (error: unknown) => {
      far.postMessage({ kind: 'failed', reason: String(error) } satisfies ThreadReply);
      far.close();
    },
  );
  return {
    postMessage: (request) => near.postMessage(request),
    on: (event: string, listener: (value: never) => void) =>
      near.on(event === 'exit' ? 'close' : event, listener as (value: unknown) => void),
    async terminate() {
      isEnded = true;
      near.close();
    },
  };
}
