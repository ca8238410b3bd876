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

/** How long a failure of a model counts for its upstream, in milliseconds, and how many of one model do. */
const countedMs = 30_000;
const countedOfModel = 3;

/** How many failures of several models are their upstream's own. */
const upstreamsFailures = 5;

interface ModelFailure {
  readonly model: string;
  readonly key: string | null;
  readonly atMs: number;
}

/** The latest failures of an upstream's models without a success between: of several models at once, they are its own. */
export class ModelFailures {
  #recent: ModelFailure[] = [];

  /** Adds a failure. Returns whether there are enough of several models. */
  add(model: string, key: string | null, nowMs: number): boolean {
    this.#recent = this.#recent.filter(({ atMs }) => nowMs - atMs < countedMs);
    const ofModel = this.#recent.filter((each) => each.model === model);
    if (ofModel.length < countedOfModel) this.#recent.push({ model, key, atMs: nowMs });
    return this.#recent.length >= upstreamsFailures;
  }

  /** The key that they all come from; `null` if they are everyone's. */
  onlyKey(): string | null {
    const keys = new FailureKeys();
    for (const { key } of this.#recent) keys.add(key);
    return keys.onlyKey();
  }

  clear(): void {
    if (this.#recent.length > 0) this.#recent = [];
  }
}
