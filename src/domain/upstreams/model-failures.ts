import { FailureKeys } from './failure-keys.ts';

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
