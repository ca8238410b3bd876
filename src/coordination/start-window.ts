import { frequencyWindowMs } from '../domain/limits/limits.ts';

/** How many expired starts may precede the others before the list is cut. */
const maxForgotten = 1_024;

/** The moments of one key's starts in the last 60 seconds, oldest first, in monotonic milliseconds. */
export class StartWindow {
  #starts: number[] = [];
  /** The index of the first start that still counts. The starts before it are cut off now and then: a start costs O(1). */
  #first = 0;

  get count(): number {
    return this.#starts.length - this.#first;
  }

  add(nowMs: number): void {
    this.#starts.push(nowMs);
  }

  /** Drops the starts that are a whole window old. */
  forgetOld(nowMs: number): void {
    while ((this.#starts[this.#first] ?? Number.POSITIVE_INFINITY) <= nowMs - frequencyWindowMs)
      this.#first++;
    if (this.#first < maxForgotten || this.#first < this.count) return;
    this.#starts = this.#starts.slice(this.#first);
    this.#first = 0;
  }

  /** The start that must leave the window before another one fits under `limit`; `null` when there has been none. */
  next(limit: number): number | null {
    return this.#starts[this.#first + Math.max(0, this.count - limit)] ?? null;
  }
}
