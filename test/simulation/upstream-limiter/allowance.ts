/** How an upstream counts what it allows. */
export type AllowanceKind = 'window' | 'bucket';

/** One limit at an upstream's own count: a fixed window, or a bucket that fills all the time. */
export class Allowance {
  readonly kind: AllowanceKind;
  readonly limit: number;
  readonly periodMs: number;
  readonly #offsetMs: number;
  #level: number;
  #atMs = 0;
  /** What was taken in all. */
  taken = 0;

  constructor(kind: AllowanceKind, limit: number, periodMs: number, offsetMs: number) {
    this.kind = kind;
    this.limit = limit;
    this.periodMs = periodMs;
    this.#offsetMs = offsetMs;
    this.#level = limit;
  }

  left(nowMs: number): number {
    this.#advance(nowMs);
    return this.#level;
  }

  /** Takes an amount whether or not it is there; a negative one is given back. */
  take(amount: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#level = Math.min(this.limit, this.#level - amount);
    this.taken += amount;
  }

  /** When all of it is there again, in milliseconds from now. */
  resetMs(nowMs: number): number {
    this.#advance(nowMs);
    if (this.kind === 'bucket') return ((this.limit - this.#level) * this.periodMs) / this.limit;
    return this.periodMs - ((nowMs + this.#offsetMs) % this.periodMs);
  }

  /** When an amount is there, in milliseconds from now. */
  afterMs(amount: number, nowMs: number): number {
    if (this.kind === 'window') return this.resetMs(nowMs);
    return (Math.max(0, amount - this.left(nowMs)) * this.periodMs) / this.limit;
  }

  #advance(nowMs: number): void {
    if (this.kind === 'bucket')
      this.#level = Math.min(this.limit, this.#level + ((nowMs - this.#atMs) * this.limit) / this.periodMs);
    else if (this.#windowOf(nowMs) > this.#windowOf(this.#atMs)) this.#level = this.limit;
    this.#atMs = nowMs;
  }

  #windowOf(atMs: number): number {
    return Math.floor((atMs + this.#offsetMs) / this.periodMs);
  }
}
