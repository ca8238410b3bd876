/** A number that only grows. */
export class Tally {
  value = 0;

  inc(by = 1): void {
    // A number that is none would stay in the sum, and every later scrape would fail.
    if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) throw new TypeError(`cannot be counted: ${by}`);
    this.value += by;
  }
}

/** A number of things at this moment. */
export class Level {
  value = 0;

  inc(): void {
    this.value++;
  }

  dec(): void {
    this.value--;
  }
}

/** Observed values: how many lie between each two bounds, and their sum. */
export class Distribution {
  readonly #bounds: readonly number[];
  /** How many values lie at or below each bound and above the one before; the last number has those above all bounds. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    if (!Number.isFinite(value)) throw new TypeError(`cannot be observed: ${value}`);
    let at = 0;
    while (value > (this.#bounds[at] ?? Number.POSITIVE_INFINITY)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }
}
