import type { QueryConfig, QueryResult } from 'pg';
import { StorageError } from '../../domain/storage-refusal.ts';
import { adviceOn } from './connection-advice.ts';
import { isRefusedForGood, storageErrorOf } from './failure-reason.ts';
import { Session } from './session.ts';
import type { ConnectionOptions } from './client-config.ts';

/** How long the first connection is tried again, as while the database starts, in milliseconds. */
const firstConnectionMs = 10_000;

/** The pauses before a lost connection is opened again, in milliseconds: twice as long each time, up to the longest. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** A connection that is kept open: one that is lost is opened again, until it is closed. */
export class KeptConnection {
  /** Resolves when it is open for the first time; rejects when it can't be opened, after which it is not tried again. */
  readonly opened: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #firstOpened = Promise.withResolvers<void>();
  readonly #kept: Promise<void>;
  /** The one that is open, or is being opened. */
  #session: Session | null = null;
  #isOpen = false;
  #pauseMs = firstPauseMs;
  #endPause: (() => void) | null = null;
  #isClosed = false;
  /** Why it is not open. */
  #fault = new StorageError('the database is being opened');

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.opened = this.#firstOpened.promise;
    this.opened.catch(() => {});
    this.#kept = this.#keep();
  }

  /** Why it is not open; `null` while it is. */
  get fault(): StorageError | null {
    if (!this.#isOpen || this.#session === null) return this.#fault;
    return this.#session.fault === null ? null : this.#explain(this.#session.fault);
  }

  /** How many queries wait for their answers. */
  get waiting(): number {
    return this.#session?.waiting ?? 0;
  }

  /** Sends queries one behind the other. Resolves with their results; rejects with the first fault among them. */
  async send(queries: readonly QueryConfig[]): Promise<readonly QueryResult[]> {
    if (this.#session === null || !this.#isOpen) throw this.#fault;
    return this.#session.send(queries);
  }

  /** Waits for what was sent, and closes it. Resolves when neither a socket nor a timer is left of it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isOpen = false;
    this.#fault = new StorageError('the database is closed', 'closed');
    this.#firstOpened.reject(this.#fault);
    this.#endPause?.();
    await this.#session?.end();
    await this.#kept;
  }

  async #keep(): Promise<void> {
    const { clock } = this.#options;
    const giveUpMs = clock.monotonicMs() + firstConnectionMs;
    let wasOpen = false;
    while (!this.#isClosed) {
      const error = await this.#useSession(() => (wasOpen = true));
      if (this.#isClosed) return;
      this.#fault = this.#explain(error);
      if (!wasOpen && (isRefusedForGood(error) || clock.monotonicMs() >= giveUpMs))
        return this.#firstOpened.reject(this.#fault);
      await this.#pause();
    }
  }

  /** Opens a session and resolves with the reason when it ends. */
  async #useSession(onOpen: () => void): Promise<unknown> {
    const { clock } = this.#options;
    try {
      this.#session = new Session(this.#options);
      await this.#session.opened;
      if (this.#isClosed) return null;
      onOpen();
      this.#isOpen = true;
      this.#firstOpened.resolve();
      const openedMs = clock.monotonicMs();
      const error = await this.#session.lost;
      // A server that accepts connections and ends them at once would be asked for the next one without a pause.
      if (clock.monotonicMs() - openedMs >= longestPauseMs) this.#pauseMs = firstPauseMs;
      return error;
    } catch (error) {
      return error;
    } finally {
      this.#isOpen = false;
    }
  }

  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.schedule(this.#pauseMs, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
    this.#endPause = null;
    this.#pauseMs = Math.min(longestPauseMs, this.#pauseMs * 2);
  }

  #explain(error: unknown): StorageError {
    const { target } = this.#options;
    const { message, reason } = storageErrorOf(error);
    return new StorageError(
      `the database ${target.name} can't be reached: ${message}${adviceOn(error, target)}`,
      reason,
    );
  }
}
