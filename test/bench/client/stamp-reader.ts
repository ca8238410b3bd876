import { stampEnd, stampStart } from '../simulator/times.ts';

/** Finds the times at which texts were written in the payload of a stream, each once, wherever it is cut into pieces. */
export class StampReader {
  readonly #found: (writtenMs: number) => void;
  /** The end of the payload so far, from where a time may have begun. */
  #rest = '';

  constructor(found: (writtenMs: number) => void) {
    this.#found = found;
  }

  /** Prepares for the next stream. */
  reset(): void {
    this.#rest = '';
  }

  /** Reads the next piece. Returns how many times were complete with it. */
  push(piece: string): number {
    const text = this.#rest + piece;
    let count = 0;
    let at = 0;
    for (let start = text.indexOf(stampStart); start >= 0; start = text.indexOf(stampStart, at)) {
      const end = text.indexOf(stampEnd, start);
      if (end < 0) {
        this.#rest = text.slice(start);
        return count;
      }
      this.#found(Number(text.slice(start + stampStart.length, end)));
      count++;
      at = end + stampEnd.length;
    }
    this.#rest = text.slice(Math.max(at, text.length - stampStart.length + 1));
    return count;
  }
}
