import { Socket } from 'node:net';
import { Client } from 'pg';
import type { QueryConfig, QueryResult } from 'pg';
import type { Clock } from '../../domain/ports/clock.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { ConnectionTarget } from './connection-target.ts';
import { isRefusedForGood, storageErrorOf } from './failure-reason.ts';
import { valueTypes } from './values.ts';

/** How long a connection may take to open, in milliseconds. */
const connectMs = 5_000;

/** How long the first connection is tried again, as while the database starts, in milliseconds. */
const firstConnectionMs = 10_000;

/** The pauses before a lost connection is opened again, in milliseconds: twice as long each time, up to the longest. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Without any answer for so long the connection is given up, in milliseconds: more than a statement may take. */
const silenceMs = 10_000;

/** How many queries may wait for their answers on a connection; more are refused. */
const maxWaitingQueries = 10_000;

/** How long the server may work on a statement, and wait in it for a lock, in milliseconds. */
export interface ServerLimits {
  readonly statementMs: number;
  readonly lockMs: number;
}

export interface ConnectionOptions {
  readonly target: ConnectionTarget;
  readonly limits: ServerLimits;
  /** Whether the server has to refuse statements that write. */
  readonly isReadOnly: boolean;
  readonly clock: Clock;
}

/**
 * A connection that is kept open: one that is lost is opened again. Queries are sent at once and answered in their order,
 * so that those of one call are not mixed with those of others. What is not answered when it is lost may have been done.
 */
export class KeptConnection {
  /** Resolves when it is open for the first time; rejects when it can't be opened. */
  readonly opened: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #startedMs: number;
  readonly #firstOpened = Promise.withResolvers<void>();
  #client: Client | null = null;
  #socket: Socket | null = null;
  #pauseMs = firstPauseMs;
  #cancelRetry: (() => void) | null = null;
  #cancelWatch: (() => void) | null = null;
  #waiting = 0;
  #lastAnswerMs = 0;
  #isClosed = false;
  /** Why it is not open. */
  #fault = new StorageError('the database is being opened');

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    this.opened = this.#firstOpened.promise;
    this.opened.catch(() => {});
    void this.#connect();
  }

  /** Why it is not open; `null` while it is. */
  get fault(): StorageError | null {
    return this.#client === null ? this.#fault : null;
  }

  /** Sends queries one behind the other. Resolves with their results; rejects with the first fault among them. */
  async send(queries: readonly QueryConfig[]): Promise<readonly QueryResult[]> {
    const client = this.#client;
    if (client === null) throw this.#fault;
    if (this.#waiting + queries.length > maxWaitingQueries)
      throw new StorageError('too many database queries are waiting');
    if (this.#waiting === 0) this.#watch();
    this.#waiting += queries.length;
    const answers = await Promise.allSettled(queries.map((query) => this.#answered(client.query(query))));
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw storageErrorOf(failed.reason);
    return answers.map((answer) => (answer as PromiseFulfilledResult<QueryResult>).value);
  }

  /** Waits for what was sent, and closes it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#fault = new StorageError('the database is closed', 'closed');
    this.#firstOpened.reject(this.#fault);
    this.#cancelRetry?.();
    const client = this.#client;
    this.#client = null;
    if (client === null) this.#socket?.destroy();
    else await client.end();
    this.#cancelWatch?.();
  }

  async #answered(sent: Promise<QueryResult>): Promise<QueryResult> {
    try {
      return await sent;
    } finally {
      this.#waiting--;
      this.#lastAnswerMs = this.#options.clock.monotonicMs();
    }
  }

  async #connect(): Promise<void> {
    const { target, limits, isReadOnly } = this.#options;
    const socket = new Socket();
    const client = new Client({
      ...target.config,
      stream: () => socket,
      pipeline: true,
      types: valueTypes,
      application_name: 'textgate',
      keepAlive: true,
      connectionTimeoutMillis: connectMs,
      statement_timeout: limits.statementMs,
      lock_timeout: limits.lockMs,
      ...(isReadOnly ? { options: '-c default_transaction_read_only=on' } : {}),
    });
    this.#socket = socket;
    // Several events may report one loss.
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the database closed the connection')));
    try {
      await client.connect();
    } catch (error) {
      return this.#notOpened(error);
    }
    if (this.#isClosed) return void client.end();
    this.#pauseMs = firstPauseMs;
    this.#client = client;
    this.#firstOpened.resolve();
  }

  #notOpened(error: unknown): void {
    this.#socket?.destroy();
    if (this.#isClosed) return;
    this.#fault = this.#explain(error);
    const triedMs = this.#options.clock.monotonicMs() - this.#startedMs;
    if (isRefusedForGood(error) || triedMs >= firstConnectionMs) this.#firstOpened.reject(this.#fault);
    this.#retryLater();
  }

  #lost(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = null;
    this.#fault = this.#explain(error);
    this.#socket?.destroy();
    this.#retryLater();
  }

  #explain(error: unknown): StorageError {
    const { message, reason } = storageErrorOf(error);
    return new StorageError(`the database ${this.#options.target.name} can't be reached: ${message}`, reason);
  }

  #retryLater(): void {
    this.#cancelRetry = this.#options.clock.schedule(this.#pauseMs, () => void this.#connect());
    this.#pauseMs = Math.min(longestPauseMs, this.#pauseMs * 2);
  }

  /** Gives the connection up when nothing is answered any more: half of one that is cut looks open for minutes. */
  #watch(): void {
    const { clock } = this.#options;
    this.#lastAnswerMs = clock.monotonicMs();
    this.#cancelWatch?.();
    const check = (): void => {
      this.#cancelWatch = null;
      if (this.#waiting === 0) return;
      const leftMs = this.#lastAnswerMs + silenceMs - clock.monotonicMs();
      if (leftMs <= 0) this.#socket?.destroy(new StorageError('the database does not answer', 'slow'));
      else this.#cancelWatch = clock.schedule(leftMs, check);
    };
    this.#cancelWatch = clock.schedule(silenceMs, check);
  }
}
