import type { ClaimedRun } from './claimed-run.ts';
import { Blocks } from './kept-deltas.ts';

/** How much of all answers is kept, and of those of one key, in bytes as `maxAnswerBytes` of one answer counts them. */
export const maxKeptBytes = 64 * 1_048_576;
const maxKeptBytesOfKey = 16 * 1_048_576;

/** What a key has. */
interface KeyShare {
  bytes: number;
  /** Its runs that have ended and are kept, the oldest first. */
  readonly ended: Set<ClaimedRun>;
}

/**
 * The memory for the texts of answers. Where it is used up, answers that have ended give theirs up, the oldest first: those of
 * the same key where that has too much, so that it takes nothing from others.
 */
export class KeptAnswers {
  readonly blocks = new Blocks();
  readonly #drop: (run: ClaimedRun) => void;
  readonly #keys = new Map<string, KeyShare>();
  /** All that have ended and are kept, the oldest first. */
  readonly #ended = new Set<ClaimedRun>();
  #bytes = 0;

  /** `drop` is called for an answer that gives up its memory, and has to give it back. */
  constructor(drop: (run: ClaimedRun) => void) {
    this.#drop = drop;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Takes memory for a key, where others may have to give theirs up for it; returns whether there is as much. */
  take(keyId: string, bytes: number, evicts = true): boolean {
    const share = this.#keys.get(keyId) ?? { bytes: 0, ended: new Set() };
    for (const run of evicts ? share.ended : []) {
      if (share.bytes + bytes <= maxKeptBytesOfKey) break;
      this.#drop(run);
    }
    if (share.bytes + bytes > maxKeptBytesOfKey) return false;
    for (const run of evicts ? this.#ended : []) {
      if (this.#bytes + bytes <= maxKeptBytes) break;
      this.#drop(run);
    }
    if (this.#bytes + bytes > maxKeptBytes) return false;
    share.bytes += bytes;
    this.#bytes += bytes;
    this.#keys.set(keyId, share);
    return true;
  }

  giveBack(keyId: string, bytes: number): void {
    const share = this.#keys.get(keyId);
    this.#bytes -= bytes;
    if (share === undefined) return;
    share.bytes -= bytes;
    if (share.bytes === 0) this.#keys.delete(keyId);
  }

  /** A run for which memory was taken has ended, and may give it up from now on. */
  add(run: ClaimedRun): void {
    this.#ended.add(run);
    this.#keys.get(run.keyId)?.ended.add(run);
  }

  remove(run: ClaimedRun): void {
    this.#ended.delete(run);
    this.#keys.get(run.keyId)?.ended.delete(run);
  }

  /** Drops all that have ended. */
  clear(): void {
    for (const run of this.#ended) this.#drop(run);
  }
}
