import type { QueryConfig, QueryResult } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { ConnectionOptions } from './client-config.ts';
import { explainUnreachable, isRefusedForGood } from './failures.ts';
import { Session } from './session.ts';
import { firstConnectionMs } from './while-lost.ts';

/** The pauses before a lost connection is opened again, in milliseconds: twice as long each time, up to the longest. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** The longest pause after connections that were given up because nothing was answered, in milliseconds. */
const longestSilentPauseMs = 60_000;

/** Is told what becomes of connections. */
export interface ConnectionWatch {
  /** One that was open is lost. */
  lost(fault: StorageError): void;
  /** One that was lost is open again. */
  regained(): void;
}

/** A connection that is kept open: one that is lost is opened again, until it is closed. */
export class KeptConnection {
  /** Resolves when it is open for the first time; rejects when it can't be opened, after which it is not tried again. */
  readonly opened: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #watch: ConnectionWatch | null;
  readonly #firstOpened = Promise.withResolvers<void>();
  readonly #kept: Promise<void>;
  /** The one that is open, or is being opened. */
  #session: Session | null = null;
  #isOpen = false;
  #pauseMs = firstPauseMs;
  /** How many connections in a row were given up because nothing was answered. */
  #silences = 0;
  #endPause: (() => void) | null = null;
  #isClosed = false;
  /** Why it is not open. */
  #fault = new StorageError('the database is being opened');

  constructor(options: ConnectionOptions, watch: ConnectionWatch | null = null) {
    this.#options = options;
    this.#watch = watch;
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

  /** Opens it anew if it is idle, and was for as long as a silent one is waited for. */
  replaceIdle(): void {
    this.#session?.giveUpIdle();
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
    let isLost = false;
    const onOpen = (): void => {
      wasOpen = true;
      if (isLost) this.#watch?.regained();
      isLost = false;
    };
    while (!this.#isClosed) {
      const error = await this.#useSession(onOpen);
      if (this.#isClosed) return;
      this.#fault = this.#explain(error);
      if (!wasOpen && (isRefusedForGood(error) || clock.monotonicMs() >= giveUpMs))
        return this.#firstOpened.reject(this.#fault);
      if (wasOpen && !isLost) this.#watch?.lost(this.#fault);
      isLost = wasOpen;
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
      this.#isOpen = true;
      onOpen();
      this.#firstOpened.resolve();
      const openedMs = clock.monotonicMs();
      const error = await this.#session.lost;
      // A server that accepts connections and ends them at once would be asked for the next one without a pause.
      const livedMs = clock.monotonicMs() - openedMs;
      if (livedMs >= longestPauseMs) this.#pauseMs = firstPauseMs;
      // One that was used for a while before has nothing to do with earlier ones.
      if (livedMs >= longestSilentPauseMs) this.#silences = 0;
      this.#noteSilence(error);
      return error;
    } catch (error) {
      return error;
    } finally {
      this.#isOpen = false;
    }
  }

  /**
   * After several silent ends the pauses grow: the server may still work for a connection that was given up, as one that
   * waits for a standby, and would have more and more of them.
   */
  #noteSilence(error: StorageError): void {
    this.#silences = error.reason === 'slow' ? this.#silences + 1 : 0;
    if (this.#silences > 1)
      this.#pauseMs = Math.min(longestSilentPauseMs, longestPauseMs * 2 ** (this.#silences - 1));
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
    this.#pauseMs = Math.min(Math.max(longestPauseMs, this.#pauseMs), this.#pauseMs * 2);
  }

  #explain(error: unknown): StorageError {
    return explainUnreachable(error, this.#options.target);
  }
}
