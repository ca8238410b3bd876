import type { Clock } from '../../domain/ports/clock.ts';
import { StorageError } from '../../domain/storage-refusal.ts';

/** An answer of the store, with what has to be known to rely on it. */
interface Answer<Result> {
  readonly result: Result;
  /** When the read began, on the monotonic clock. */
  readonly readMs: number;
  /** How many changes were known then. */
  readonly changes: number;
}

/**
 * Says how far answers of the store can be relied on, now and when they are kept. In a process that has the store alone
 * they can be until it changes something itself. Where other processes change the store, an answer can be relied on for a
 * limited time, by which a change may be noticed late; reads that find no change since confirm it anew.
 */
export class ConfirmedReads {
  readonly #clock: Clock;
  readonly #maxUnconfirmedMs: number;
  #changes = 0;
  #confirmedMs = Number.NEGATIVE_INFINITY;

  /** `maxUnconfirmedMs` is infinite for a process that has the store alone. */
  constructor(clock: Clock, maxUnconfirmedMs: number) {
    this.#clock = clock;
    this.#maxUnconfirmedMs = maxUnconfirmedMs;
  }

  /** Whether answers that were kept, and not outdated by a change, can be used. */
  get isConfirmed(): boolean {
    return this.#isRecent(this.#confirmedMs);
  }

  /** Says that the store has changed: answers to what was read before are not used any more. */
  change(): void {
    this.#changes++;
  }

  /** Says that all changes which were made before a time, on the monotonic clock, are known. */
  confirm(atMs: number): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, atMs);
  }

  /**
   * Asks the store, and once more if it has changed meanwhile or took so long that it may have: reads do not queue behind
   * writes. Rejects when the second answer takes that long, too. `mayBeKept` says whether no change has followed the answer so
   * far: it is asked as the answer is kept, as one may be told between the answer and that.
   */
  async read<Result>(
    ask: () => Promise<Result>,
  ): Promise<{ readonly result: Result; readonly mayBeKept: () => boolean }> {
    const first = await this.#ask(ask);
    if (first.changes === this.#changes && this.#isReliable(first))
      return { result: first.result, mayBeKept: () => first.changes === this.#changes };
    const second = await this.#ask(ask);
    if (!this.#isReliable(second)) throw new StorageError('the database takes too long to answer', 'slow');
    return { result: second.result, mayBeKept: () => false };
  }

  async #ask<Result>(ask: () => Promise<Result>): Promise<Answer<Result>> {
    const begun = { readMs: this.#clock.monotonicMs(), changes: this.#changes };
    return { ...begun, result: await ask() };
  }

  /** A confirmation is of no use to an answer that was outdated by a change. */
  #isReliable({ readMs, changes }: Answer<unknown>): boolean {
    return this.#isRecent(changes === this.#changes ? Math.max(readMs, this.#confirmedMs) : readMs);
  }

  #isRecent(atMs: number): boolean {
    return this.#clock.monotonicMs() - atMs <= this.#maxUnconfirmedMs;
  }
}
