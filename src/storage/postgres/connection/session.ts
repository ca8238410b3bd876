import { Socket } from 'node:net';
import type { QueryConfig, QueryResult } from 'pg';
import type { Clock } from '../../../domain/ports/clock.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import { createClient, settingsOf } from './client-config.ts';
import type { ConnectionOptions, ServerLimits } from './client-config.ts';
import { isOfOtherSession, storageErrorOf } from './failures.ts';
import { requireOwnSession } from './own-session.ts';

/** How long a connection may take to open, in milliseconds. */
const connectMs = 5_000;

/**
 * How long the answer to a statement may be on its way once the server has to be done with it, in milliseconds. With the
 * time of a unit's statement it is less than what is left of a lease when it is renewed: a renewal whose answer is lost is
 * made again, on another connection, before the lease is over.
 */
const answerMs = 2_000;

/** How long a connection may be silent while an answer is due before it is given up, in milliseconds. */
function silenceMsOf({ statementMs }: ServerLimits): number {
  return statementMs + answerMs;
}

/** How long the server may take to close a connection that is not used any more, in milliseconds. */
const goodbyeMs = 1_000;

/** How many queries may wait for their answers on a connection; more are refused. */
export const maxWaitingQueries = 10_000;

/**
 * One connection to the database, from its opening to its end. Queries are sent at once and answered in their order, so
 * that those of one call are not mixed with those of others. What is not answered when it is lost may have been done.
 */
export class Session {
  /** Resolves when it can be used; rejects when it can't be opened. */
  readonly opened: Promise<void>;
  /** Resolves with the reason when it can't be used any more, or could not be opened. */
  readonly lost: Promise<StorageError>;
  readonly #options: ConnectionOptions;
  readonly #silenceMs: number;
  readonly #socket = new Socket();
  readonly #client: ReturnType<typeof createClient>;
  readonly #watch: SilenceWatch;
  readonly #lost = Promise.withResolvers<StorageError>();
  readonly #socketClosed: Promise<unknown>;
  #isOpen = false;
  #waiting = 0;
  #fault: StorageError | null = null;
  #drained: (() => void) | null = null;
  #ended: Promise<void> | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#silenceMs = silenceMsOf(options.limits);
    this.lost = this.#lost.promise;
    this.#client = createClient(options.target, this.#socket);
    this.#socketClosed = new Promise((resolve) => this.#socket.once('close', resolve));
    this.#watch = new SilenceWatch({
      clock: options.clock,
      silenceMs: this.#silenceMs,
      isWaiting: () => this.#waiting > 0,
      onSilence: () => this.#giveUp(new StorageError('the database does not answer', 'slow')),
    });
    // pg reports a connection that breaks twice, by its error and by its end; the first one says why.
    this.#client.on('error', (error) => this.#lose(error));
    this.#client.on('end', () => this.#lose(new StorageError('the database closed the connection')));
    this.opened = this.#open();
    this.opened.catch(() => {});
  }

  /** Why nothing can be sent; `null` while it can. */
  get fault(): StorageError | null {
    return this.#fault;
  }

  /** How many queries wait for their answers. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Sends queries one behind the other. Resolves with their results; rejects with the first fault among them, once all of
   * them are answered. Either all of them are sent or none is.
   */
  send(queries: readonly QueryConfig[]): Promise<readonly QueryResult[]> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    // A unit that is larger than that is sent when nothing waits: it would never be sent otherwise.
    if (this.#waiting > 0 && this.#waiting + queries.length > maxWaitingQueries)
      return Promise.reject(new StorageError('too many database queries are waiting', 'slow'));
    if (this.#waiting === 0) this.#watch.start();
    this.#waiting += queries.length;
    return new Promise((resolve, reject) => {
      const results: QueryResult[] = [];
      let fault: StorageError | null = null;
      let left = queries.length;
      let isHeld = true;
      // Held until the end of the turn. pg reports a query that it can't write and goes on: the rest of a transaction
      // would be sent, and committed without it.
      const { stream } = this.#client.connection;
      stream.cork();
      const answer = (error: Error | null, result: QueryResult): void => {
        if (error === null) results.push(result);
        else fault ??= isHeld ? this.#unsent(error) : storageErrorOf(error);
        this.#answered();
        if (--left > 0) return;
        if (fault === null) return resolve(results);
        reject(fault);
        // A session keeps refusing writes when its database accepts them again, as does that of a primary that was replaced.
        if (fault.reason === 'read_only' && this.#options.callsFunctions) this.#giveUp(fault);
        if (isOfOtherSession(fault)) this.#giveUp(fault);
      };
      for (const query of queries) this.#client.query(query, once(answer));
      // Behind the reports of pg, which are made in callbacks of the same turn.
      process.nextTick(() => {
        isHeld = false;
        stream.uncork();
      });
    });
  }

  /**
   * Gives it up if it is idle, and was for as long as a silent one is waited for. What made another connection silent may
   * have happened to this one, too: its next call would wait as long before it fails.
   */
  giveUpIdle(): void {
    if (this.#isOpen && this.#waiting === 0 && this.#watch.silentMs >= this.#silenceMs)
      this.#giveUp(new StorageError('it was replaced: another connection was silent'));
  }

  /** Waits for what was sent, and closes it; one that is not open yet is closed at once. */
  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    const closed = new StorageError('the database is closed', 'closed');
    this.#fault ??= closed;
    if (!this.#isOpen) this.#giveUp(closed);
    if (this.#waiting > 0) await new Promise<void>((resolve) => (this.#drained = resolve));
    // A server that is not there any more never answers a goodbye: pg would wait until TCP gives up, for minutes.
    const cancel = this.#options.clock.schedule(goodbyeMs, () => this.#giveUp(closed));
    if (!this.#socket.destroyed) void this.#client.end();
    await this.#socketClosed;
    cancel();
    this.#lose(closed);
  }

  async #open(): Promise<void> {
    const { clock, target } = this.#options;
    let late = `it did not answer within ${connectMs / 1_000} seconds`;
    const cancel = clock.schedule(connectMs, () => this.#giveUp(new StorageError(late, 'slow')));
    try {
      await this.#client.connect();
      this.#client.connection.stream.on('data', () => this.#watch.hear());
      // A pooler takes connections for which it has no session, and lets their first statement wait.
      late += ': where it is a pooler, give its pool 17 sessions for each gateway';
      // After a failover the address may still lead to the old server, or to one that is not promoted yet.
      const isSet = await this.#requireWrites();
      if (!isSet) {
        await requireOwnSession(target, clock);
        await this.send([{ text: `SELECT ${settingsOf(this.#options)}` }]);
      }
      this.#isOpen = true;
    } catch (error) {
      this.#giveUp(storageErrorOf(error));
      throw error;
    } finally {
      cancel();
    }
  }

  /**
   * Refuses a standby, and a database that refuses writes, as a provider's whose disk is full. Resolves with whether the
   * settings are made, which are where the server itself has taken the connection: a pooler names another session in its
   * greeting than the one that answers. One statement does it all, since a slow database has to answer it in time.
   */
  async #requireWrites(): Promise<boolean> {
    const isRefusing = `current_setting('transaction_read_only') = 'on'`;
    const isOfServer = `pg_backend_pid() = ${this.#client.processID ?? 0}`;
    const [answer] = await this.send([
      {
        text: `SELECT pg_is_in_recovery() AS standby, ${isRefusing} AS refusing, ${isOfServer} AS own,
          CASE WHEN ${isOfServer} THEN ${settingsOf(this.#options)} END`,
      },
    ]);
    const [row] = (answer?.rows ?? []) as readonly Readonly<Record<'standby' | 'refusing' | 'own', number>>[];
    if (row?.standby === 1)
      throw new StorageError(
        'it is a standby, which refuses writes: name the primary in storage.url',
        'read_only',
      );
    if (row?.refusing === 1 && this.#options.callsFunctions)
      throw new StorageError('it refuses writes: default_transaction_read_only is on', 'read_only');
    return row?.own === 1;
  }

  #answered(): void {
    if (--this.#waiting === 0) this.#drained?.();
  }

  /** What is held is not sent any more: the socket is destroyed before it is written. */
  #unsent(error: Error): StorageError {
    const fault = new StorageError(`a query can't be sent: ${error.message}`, 'rejected');
    this.#giveUp(new StorageError('the connection was closed: a query could not be sent'));
    return fault;
  }

  /** Destroys the socket, whatever is on its way: pg rejects all that waits with this error. */
  #giveUp(error: StorageError): void {
    this.#socket.destroy(error);
    this.#lose(error);
  }

  #lose(error: unknown): void {
    this.#fault ??= storageErrorOf(error);
    this.#watch.stop();
    this.#socket.destroy();
    this.#lost.resolve(this.#fault);
  }
}

/** pg answers a query that it can't write twice: by its error, and by the end of what was sent of it. */
function once<Values extends readonly unknown[]>(
  call: (...values: Values) => void,
): (...values: Values) => void {
  let isCalled = false;
  return (...values) => {
    if (isCalled) return;
    isCalled = true;
    call(...values);
  };
}

interface SilenceOptions {
  readonly clock: Clock;
  /** How long the silence may last, in milliseconds. */
  readonly silenceMs: number;
  /** Whether something has to come; otherwise silence is no fault. */
  readonly isWaiting: () => boolean;
  readonly onSilence: () => void;
}

/** Calls back when nothing comes for too long. */
class SilenceWatch {
  readonly #options: SilenceOptions;
  #heardMs = 0;
  #cancel: (() => void) | null = null;

  constructor(options: SilenceOptions) {
    this.#options = options;
  }

  /** Something has to come from now on. */
  start(): void {
    this.hear();
    // One timer for many waits: setting one for each would cost more than what is waited for.
    this.#cancel ??= this.#options.clock.schedule(this.#options.silenceMs, () => this.#check());
  }

  /** Something came: the silence begins anew. */
  hear(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
  }

  /** How long nothing came, in milliseconds. */
  get silentMs(): number {
    return this.#options.clock.monotonicMs() - this.#heardMs;
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #check(): void {
    this.#cancel = null;
    const { clock, silenceMs, isWaiting, onSilence } = this.#options;
    if (!isWaiting()) return;
    const leftMs = this.#heardMs + silenceMs - clock.monotonicMs();
    if (leftMs <= 0) onSilence();
    else this.#cancel = clock.schedule(leftMs, () => this.#check());
  }
}
