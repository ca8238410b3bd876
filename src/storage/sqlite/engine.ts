import { Worker } from 'node:worker_threads';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import type { WorkerOptions, WorkerReply, WorkerRequest } from './messages.ts';

/** How many units may wait for a commit; more are refused rather than kept. */
const maxWaitingUnits = 10_000;

interface Waiting {
  readonly resolve: (rows: readonly (readonly Row[])[]) => void;
  readonly reject: (error: Error) => void;
}

/** Runs units on SQLite in a worker thread of its own. */
export function createSqliteEngine(options: WorkerOptions): Engine {
  const waiting = new Map<number, Waiting>();
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let lastId = 0;
  let broken: Error | null = null;

  if (options.path !== ':memory:')
    for (const path of [options.path, `${options.path}-owner`]) makePrivateFile(path);
  const worker = new Worker(workerFile(), { workerData: options, name: 'textgate-sqlite' });
  const post = (request: WorkerRequest): void => worker.postMessage(request);

  const breakDown = (reason: string): void => {
    broken ??= new StorageError(reason);
    for (const { reject } of waiting.values()) reject(broken);
    waiting.clear();
    opened.reject(broken);
    closed.resolve();
  };
  worker.on('message', (message: WorkerReply) => {
    if ('results' in message) {
      for (const { id, rows, error } of message.results) settle(waiting, id, rows, error);
    } else if ('opened' in message) {
      opened.resolve();
    } else if ('failed' in message) {
      breakDown(`the database ${options.path} can't be opened: ${message.failed}`);
    } else {
      closed.resolve();
    }
  });
  worker.on('error', (error) => breakDown(`the database thread failed: ${String(error)}`));
  worker.on('exit', () => breakDown('the database is closed'));
  opened.promise.catch(() => {});

  return {
    ready: opened.promise,
    get broken() {
      return broken;
    },
    async run(unit: readonly Statement[]) {
      if (broken !== null) throw broken;
      if (waiting.size >= maxWaitingUnits) throw new StorageError('too many database units are waiting');
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        post({ id, unit });
      });
    },
    async close() {
      if (broken === null) post({ close: true });
      broken ??= new StorageError('the database is closed');
      await closed.promise;
      await worker.terminate();
    },
  };
}

function settle(
  waiting: Map<number, Waiting>,
  id: number,
  rows: readonly (readonly Row[])[] | undefined,
  error: string | undefined,
): void {
  const unit = waiting.get(id);
  waiting.delete(id);
  if (rows === undefined) unit?.reject(new StorageError(error ?? 'the unit failed'));
  else unit?.resolve(rows);
}

/** The file exists before SQLite opens it, because its log files take over its mode. */
function makePrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
}

/** The worker runs from source as TypeScript, and as JavaScript from the packed package. */
function workerFile(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);
}
