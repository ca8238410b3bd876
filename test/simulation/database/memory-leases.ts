/** How long a lease lasts: written out, not taken from the source. */
export const leaseMs = 15_000;

/** A lease as the database keeps it. */
interface Lease {
  readonly sinceMs: number;
  readonly renewedMs: number;
}

/** The leases of all processes, by owner, as the statements on them must keep them. */
export class MemoryLeases {
  readonly #rows = new Map<string, Lease>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get(owner: string): Lease | undefined {
    return this.#rows.get(owner);
  }

  /** Whether there is a lease of an owner, over or not. */
  has(owner: string): boolean {
    return this.#rows.has(owner);
  }

  /** Whether an owner has a lease that is not over. */
  isHeld(owner: string): boolean {
    const lease = this.#rows.get(owner);
    return lease !== undefined && lease.renewedMs > this.#nowMs() - leaseMs;
  }

  /** Renews a lease; where there is none, `next` takes one. Returns whether it did. */
  renew(owner: string, next: string): boolean {
    const nowMs = this.#nowMs();
    const lease = this.#rows.get(owner);
    if (lease === undefined) this.#rows.set(next, { sinceMs: nowMs, renewedMs: nowMs });
    else this.#rows.set(owner, { sinceMs: this.isHeld(owner) ? lease.sinceMs : nowMs, renewedMs: nowMs });
    return lease === undefined;
  }

  /** Whether an owner may end the leases of others that are over. */
  mayJudge(judge: string): boolean {
    const own = this.#rows.get(judge);
    return own !== undefined && this.isHeld(judge) && own.sinceMs <= this.#nowMs() - leaseMs;
  }

  /** The leases that an owner may end. */
  over(judge: string): readonly string[] {
    if (!this.mayJudge(judge)) return [];
    return [...this.#rows.keys()].filter((owner) => owner !== judge && !this.isHeld(owner));
  }

  end(owner: string): void {
    this.#rows.delete(owner);
  }
}
