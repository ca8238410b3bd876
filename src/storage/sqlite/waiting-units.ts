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
  /** In the order of their numbers: the thread answers in the order in which it is asked. No `Map`: see `Roster`. */
  #waiting: Waiting[] = [];
  /** Those of this turn. */
  #units: Unit[] = [];
  #last = 0;
  #over: StorageError | null = null;

  constructor(most: number, post: (request: UnitsRequest) => void) {
    this.#most = most;
    this.#post = post;
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

  /** Posts those of this turn now. */
  flush(): void {
    const units = this.#units;
    if (units.length === 0) return;
    this.#units = [];
    this.#post({ kind: 'units', first: this.#last - units.length + 1, units });
  }

  /** Settles the units from a number on with their results. */
  settle(first: number, results: readonly UnitResult[]): void {
    if (this.#over !== null) return;
    const oldest = this.#last - this.#waiting.length + 1;
    if (first !== oldest) throw new Error(`the results of unit ${first} came before those of ${oldest}`);
    const settled = this.#waiting.splice(0, results.length);
    for (const [at, result] of results.entries()) {
      const unit = settled[at];
      if (result.kind === 'done') unit?.resolve(result.done as never);
      else unit?.reject(new StorageError(result.error, reasonOf(result.code)));
    }
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
