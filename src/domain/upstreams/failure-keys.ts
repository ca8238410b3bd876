/** The failures of one key that count for all keys; its others show what that key sends. */
const countedOfKey = 3;

/** How many failures of enough keys are everyone's. The fifth key is enough in any case, so no more are kept. */
const everyonesFailures = 5;

/** Some failures by the keys whose requests failed: what one key alone causes must change nothing for others. */
export class FailureKeys {
  readonly #counts = new Map<string | null, number>();

  /** Adds a failure; `null` for one that no request can have caused. */
  add(key: string | null): void {
    if (this.#counts.size < everyonesFailures || this.#counts.has(key))
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  /** The key that the failures come from; `null` if they are everyone's. */
  onlyKey(): string | null {
    let counted = 0;
    let mostKey: string | null = null;
    let most = 0;
    for (const [key, count] of this.#counts) {
      counted += key === null ? count : Math.min(count, countedOfKey);
      if (key === null || count <= most) continue;
      mostKey = key;
      most = count;
    }
    return counted >= everyonesFailures ? null : mostKey;
  }

  clear(): void {
    this.#counts.clear();
  }
}
