import type { Clock } from '../../domain/ports/clock.ts';
import { KeyLockedError, StorageError } from '../../domain/storage-refusal.ts';
import { AnsweredError } from './connection/failures.ts';

/** How long calls are refused after one that waited for a lock to no avail, in milliseconds; then one of them is a trial. */
const refusalMs = 3_000;

/**
 * How many calls for the same rows are sent at once: as many may each wait for a lock before other calls of their connection
 * are made. With one, a connection would be idle between an answer and the next call.
 */
const sentAtOnce = 2;

/** From when on no further ones are sent behind one that is not answered, in milliseconds: it may wait for a lock. */
const lateMs = 100;

/** How many calls may wait for those that are sent; more are refused. */
const maxWaiting = 10_000;

/** For how many rows calls are refused at a time. Beyond that the earliest refusal ends. */
const maxRefused = 1_000;

/** What PostgreSQL answers when a lock was not free in time. */
const lockTimeout = '55P03';

/** The calls for some rows that are under way, and those that wait for them. */
interface Calls {
  sent: number;
  /** When the last one was answered, or the first one sent, on the monotonic clock. */
  movedMs: number;
  readonly waiting: { readonly send: () => void; readonly reject: (error: StorageError) => void }[];
}

/**
 * Keeps calls for rows that another session has locked, such as an operator's open transaction, from those of other keys:
 * each would wait for the lock as long as it may, and those of other keys behind it.
 */
export class LockedRows {
  readonly #clock: Clock;
  readonly #calls = new Map<string, Calls>();
  /** By rows, until when their calls are refused, on the monotonic clock; each stays until a trial is made. */
  readonly #refused = new Map<string, number>();
  #waiting = 0;
  #drained: PromiseWithResolvers<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Makes a call for rows of this name, in the order in which it is asked for; rejects at once for a while after one that
   * found them locked. Calls wait behind the trial after that, and fail with it. A call for rows without a name is made
   * at once: what it meets says nothing of others.
   */
  run<Done>(rows: string | null, call: () => Promise<Done>): Promise<Done> {
    if (rows === null) return noteLock('rows of a call', call);
    const refusedUntilMs = this.#refused.get(rows);
    if (refusedUntilMs !== undefined && this.#clock.monotonicMs() < refusedUntilMs)
      return Promise.reject(refusedError(rows));
    const calls = this.#calls.get(rows) ?? { sent: 0, movedMs: this.#clock.monotonicMs(), waiting: [] };
    if (this.#hasRoom(rows, calls)) return this.#send(rows, calls, call);
    if (this.#waiting >= maxWaiting)
      return Promise.reject(new StorageError('too many database calls are waiting', 'slow'));
    this.#waiting++;
    return new Promise((resolve, reject) => {
      calls.waiting.push({ send: () => resolve(this.#send(rows, calls, call)), reject });
    });
  }

  /** Resolves when no call is under way, and none waits. */
  async drain(): Promise<void> {
    if (this.#calls.size === 0) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /** Whether another call may be sent; where one waits, that is asked again after each answer. */
  #hasRoom(rows: string, { sent, movedMs }: Calls): boolean {
    if (sent === 0) return true;
    const isTrial = this.#refused.has(rows);
    return !isTrial && sent < sentAtOnce && this.#clock.monotonicMs() - movedMs < lateMs;
  }

  async #send<Done>(rows: string, calls: Calls, call: () => Promise<Done>): Promise<Done> {
    if (calls.sent++ === 0) this.#calls.set(rows, calls);
    try {
      const done = await noteLock(rows, call);
      this.#refused.delete(rows);
      return done;
    } catch (error) {
      if (error instanceof KeyLockedError) this.#refuse(rows, calls);
      throw error;
    } finally {
      this.#ended(rows, calls);
    }
  }

  #refuse(rows: string, { waiting }: Calls): void {
    // Set anew, so that the order is that of their times.
    this.#refused.delete(rows);
    this.#refused.set(rows, this.#clock.monotonicMs() + refusalMs);
    const [earliest] = this.#refused.keys();
    if (this.#refused.size > maxRefused && earliest !== undefined) this.#refused.delete(earliest);
    this.#waiting -= waiting.length;
    for (const { reject } of waiting.splice(0)) reject(refusedError(rows));
  }

  #ended(rows: string, calls: Calls): void {
    calls.sent--;
    calls.movedMs = this.#clock.monotonicMs();
    for (let next; this.#hasRoom(rows, calls) && (next = calls.waiting.shift()) !== undefined;) {
      this.#waiting--;
      next.send();
    }
    if (calls.sent > 0) return;
    this.#calls.delete(rows);
    if (this.#calls.size === 0) this.#drained?.resolve();
  }
}

/** Makes a call, and tells a lock that was not free in time from what else it may fail for. */
async function noteLock<Done>(rows: string, call: () => Promise<Done>): Promise<Done> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof AnsweredError) || error.code !== lockTimeout) throw error;
    throw new KeyLockedError(`${describeLocked(rows)}: ${error.message}`, true);
  }
}

/** The refusal of a call that is not sent. */
function refusedError(rows: string): KeyLockedError {
  return new KeyLockedError(`${describeLocked(rows)}: it was not free before`, false);
}

function describeLocked(rows: string): string {
  return `another session has a lock on the ${rows} or on a table that it needs`;
}
