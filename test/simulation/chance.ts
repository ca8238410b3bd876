import { seededNumbers } from '../support/random-numbers.ts';

/** The choices of one history: the same seed makes the same ones. */
export class Chance {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededNumbers(seed);
  }

  /** True with a probability. */
  isTrue(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.#random() * items.length)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }
}
