import { StorageError } from '../../domain/storage-refusal.ts';
import { reasonOf } from './failure-reason.ts';
import type { Unit, UnitResult, UnitsRequest } from './thread-messages.ts';

interface Waiting {
  /** Takes the rows of a unit of statements, or the row of a fixed unit: the thread answers each in its kind. */
  readonly resolve: (done: never) => void;
  readonly reject: (error: StorageError) => void;
}

/**
 * The units that wait for a thread. Those of one turn of the event loop travel in one message, because waking the thread
 * costs more than a unit: `post` gets them when the turn is over.
 */
export class WaitingUnits {
  readonly #most: number;
  readonly #post: (request: UnitsRequest) => void;
  readonly #now: () => number;
  readonly #onDamaged: (error: StorageError) => void;
  /** In the order of their numbers: the thread answers in the order in which it is asked. No `Map`: see `Roster`. */
  #waiting: Waiting[] = [];
  /** Those of this turn. */
  #units: Unit[] = [];
  #last = 0;
  #over: StorageError | null = null;

  /**
   * `now` is the time of day, in milliseconds since 1970; `onDamaged` is called when a unit failed because the database is
   * damaged.
   */
  constructor(
    most: number,
    post: (request: UnitsRequest) => void,
    now: () => number,
    onDamaged: (error: StorageError) => void = () => {},
  ) {
    this.#most = most;
    this.#post = post;
    this.#now = now;
    this.#onDamaged = onDamaged;
  }

  /** Resolves with what the unit resulted in. More than the most that may wait are refused: it bounds their memory. */
  handIn<Done>(unit: Unit): Promise<Done> {
    return new Promise((resolve, reject) => {
      if (this.#over !== null) return reject(this.#over);
      if (this.#waiting.length >= this.#most)
        return reject(new StorageError('too many database units are waiting'));
      this.#last++;
      this.#waiting.push({ resolve, reject });
      if (this.#units.push(unit) === 1) setImmediate(() => this.flush());
    });
  }

  /** Posts those of this turn now. All of them are rejected if their message can't be posted. */
  flush(): void {
    const units = this.#units;
    if (units.length === 0) return;
    this.#units = [];
    const before = this.#last - units.length;
    try {
      this.#post({ kind: 'units', first: before + 1, nowMs: this.#now(), units });
    } catch (error) {
      // In a callback of the event loop it would end the process. The units may be offered again, as one bad value fails
      // all of them. Their numbers go to the next ones, since the thread has not seen them.
      const failure = new StorageError(`units could not be sent to the thread: ${String(error)}`, 'unknown');
      this.#last = before;
      for (const { reject } of this.#waiting.splice(-units.length)) reject(failure);
    }
  }

  /** Settles the units from a number on with their results. Returns false, and settles none, if others are before them. */
  settle(first: number, results: readonly UnitResult[]): boolean {
    if (this.#over !== null) return true;
    if (first !== this.#last - this.#waiting.length + 1) return false;
    const settled = this.#waiting.splice(0, results.length);
    for (const [at, result] of results.entries()) {
      const unit = settled[at];
      if (result.kind === 'done') unit?.resolve(result.done as never);
      else {
        const error = new StorageError(result.error, reasonOf(result.code));
        if (error.reason === 'damaged') this.#onDamaged(error);
        unit?.reject(error);
      }
    }
    return true;
  }

  /** Rejects all of them, whether they were posted or not, and all that come later. */
  end(error: StorageError): void {
    this.#over = error;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#units = [];
    for (const { reject } of waiting) reject(error);
  }
}
