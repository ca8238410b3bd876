/**
 * How the tokens that upstreams report relate to those that this service counted for the same text, and whether that
 * relation has changed. Tokenizers differ, so each pair of an upstream and a model has its own usual ratio, which is
 * learned from its samples.
 */

/** The direction of the tokens that are compared. */
export type UsageKind = 'input' | 'output';

const kinds: readonly UsageKind[] = ['input', 'output'];

/** How many samples make up the ratio of now. */
export const recentSamples = 100;

/** How many samples before those make up the usual ratio: a change is usual after about half as many. */
export const referenceSamples = 1_000;

/** With how many of them the usual ratio is first known, in samples. */
export const leastReferenceSamples = 100;

/**
 * After how many further samples the usual ratio is found anew: sorting a thousand samples at every scrape, for each of
 * many models, would hold up all requests.
 */
const samplesPerReference = 20;

/**
 * The width of the uncertainty, in standard deviations: chance alone exceeds it once in 1.7 million independent looks, and
 * a gateway is looked at for years. With 4 deviations, one run in 100 of 3,000 samples had an alarm.
 */
const certainty = 5;

/** How many pairs of an upstream and a model are followed: two windows of each take 18 KB. */
export const maxPairs = 500;

/** The largest ratio of a sample, either way: one absurd count must not be infinite. */
const maxRatio = 64;

/** The figures of one upstream, one of its models and one direction. */
export interface DriftFigures {
  readonly upstream: string;
  /** The model's name there. */
  readonly model: string;
  readonly kind: UsageKind;
  /** Reported tokens per counted token: the median of the recent samples. */
  readonly ratio: number;
  /** That ratio, divided by the usual one; `null` until the usual one is known. */
  readonly drift: Drift | null;
}

/** A ratio's change. */
interface Drift {
  /** 1 for no change, 1.1 if 10 % more is reported than was usual. */
  readonly ratio: number;
  /** How far the ratio may be from 1 by chance, as the samples scatter. */
  readonly uncertainty: number;
}

/** A fixed number of values, of which the oldest is replaced. */
class Window {
  readonly #values: Float64Array;
  #added = 0;

  constructor(size: number) {
    this.#values = new Float64Array(size);
  }

  get size(): number {
    return Math.min(this.#added, this.#values.length);
  }

  get isFull(): boolean {
    return this.#added >= this.#values.length;
  }

  /** Adds a value; returns the one that it replaces, or `null`. */
  add(value: number): number | null {
    const at = this.#added++ % this.#values.length;
    const replaced = this.#added > this.#values.length ? (this.#values[at] ?? null) : null;
    this.#values[at] = value;
    return replaced;
  }

  /** The values in ascending order. */
  sorted(): Float64Array {
    return this.#values.subarray(0, this.size).toSorted();
  }
}

/** A median, and the bounds within which that of endlessly many samples lies, whatever their distribution. */
interface Median {
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/** The median of sorted values. Its bounds are the values whose ranks are `certainty` deviations from its own. */
function medianOf(sorted: Float64Array): Median {
  const middle = (sorted.length - 1) / 2;
  const reach = (certainty * Math.sqrt(sorted.length)) / 2;
  const at = (rank: number): number => sorted[Math.max(0, Math.min(sorted.length - 1, rank))] ?? 0;
  return {
    value: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    least: at(Math.floor(middle - reach)),
    most: at(Math.ceil(middle + reach)),
  };
}

/** The samples of one pair in one direction, as logarithms of their ratios. */
class Ratios {
  readonly #recent = new Window(recentSamples);
  readonly #reference = new Window(referenceSamples);
  /** The figures of the samples so far; `null` after another one. */
  #figures: Pick<DriftFigures, 'ratio' | 'drift'> | null = null;
  #usual: Median | null = null;
  #sinceUsual = 0;

  add(ratio: number): void {
    this.#figures = null;
    const old = this.#recent.add(Math.log(ratio));
    if (old === null) return;
    this.#reference.add(old);
    if (++this.#sinceUsual >= samplesPerReference) this.#usual = null;
  }

  /** `null` until there are enough samples. */
  figures(): Pick<DriftFigures, 'ratio' | 'drift'> | null {
    if (!this.#recent.isFull || this.#figures !== null) return this.#figures;
    const now = medianOf(this.#recent.sorted());
    this.#figures = { ratio: Math.exp(now.value), drift: this.#driftOf(now) };
    return this.#figures;
  }

  #driftOf(now: Median): Drift | null {
    if (this.#reference.size < leastReferenceSamples) return null;
    const usual = (this.#usual ??= this.#findUsual());
    const change = now.value - usual.value;
    // Only the sides that face each other: half of the texts in another language have two medians, far from each other.
    const error =
      change > 0
        ? Math.hypot(now.value - now.least, usual.most - usual.value)
        : Math.hypot(now.most - now.value, usual.value - usual.least);
    return { ratio: Math.exp(change), uncertainty: Math.abs(Math.expm1(change > 0 ? error : -error)) };
  }

  #findUsual(): Median {
    this.#sinceUsual = 0;
    return medianOf(this.#reference.sorted());
  }
}

/** One upstream and one of its models. */
interface Pair {
  readonly upstream: string;
  readonly model: string;
  readonly ratios: Readonly<Record<UsageKind, Ratios>>;
}

/** Follows the ratios of all pairs. It begins anew with each process. */
export class UsageDrift {
  /** The pair that was sampled last is the last one. */
  readonly #pairs = new Map<string, Pair>();

  /** Adds a sample: tokens that the upstream reported, and those that were counted, which are more than 0. */
  add(upstream: string, model: string, kind: UsageKind, reported: number, counted: number): void {
    const ratio = Math.min(maxRatio, Math.max(1 / maxRatio, reported / counted));
    this.#pairOf(upstream, model).ratios[kind].add(ratio);
  }

  /** The figures of all pairs with enough samples. */
  figures(): readonly DriftFigures[] {
    return [...this.#pairs.values()].flatMap(({ upstream, model, ratios }) =>
      kinds.flatMap((kind) => {
        const figures = ratios[kind].figures();
        return figures === null ? [] : [{ upstream, model, kind, ...figures }];
      }),
    );
  }

  /** Finds a pair, and makes it the last one; a new one takes the place of the one that was not sampled for longest. */
  #pairOf(upstream: string, model: string): Pair {
    const name = JSON.stringify([upstream, model]);
    const pair = this.#pairs.get(name) ?? {
      upstream,
      model,
      ratios: { input: new Ratios(), output: new Ratios() },
    };
    this.#pairs.delete(name);
    const [oldest] = this.#pairs.keys();
    if (this.#pairs.size >= maxPairs && oldest !== undefined) this.#pairs.delete(oldest);
    this.#pairs.set(name, pair);
    return pair;
  }
}
