/** What is compared of a day and a model. */
export const quantities = ['requests', 'input', 'cached', 'cacheWrite', 'output'] as const;
export type Quantity = (typeof quantities)[number];

/** The sums of a day and a model: a number of requests, and tokens. Cached tokens and cache writes are parts of the input. */
export type Sums = Record<Quantity, number>;

export function noSums(): Sums {
  return { requests: 0, input: 0, cached: 0, cacheWrite: 0, output: 0 };
}

/** Adds to the first sums. */
export function addSums(to: Sums, more: Sums): void {
  for (const quantity of quantities) to[quantity] += more[quantity];
}

/** The most days times models: more are no usage export of a provider, and would fill the memory. */
const maxLines = 200_000;

/** Values by day and model. */
export class ByDayAndModel<Value> {
  readonly #days = new Map<string, Map<string, Value>>();
  readonly #create: () => Value;
  #size = 0;

  constructor(create: () => Value) {
    this.#create = create;
  }

  /** The value of a day and a model, which is made if there is none. Throws if there are too many. */
  at(day: string, model: string): Value {
    let models = this.#days.get(day);
    if (models === undefined) {
      models = new Map();
      this.#days.set(day, models);
    }
    const found = models.get(model);
    if (found !== undefined) return found;
    if (++this.#size > maxLines)
      throw new Error(`there are more than ${maxLines} pairs of a day and a model: reconcile fewer days`);
    const value = this.#create();
    models.set(model, value);
    return value;
  }

  /** All values, by no particular order. */
  *all(): Generator<readonly [day: string, model: string, value: Value]> {
    for (const [day, models] of this.#days) for (const [model, value] of models) yield [day, model, value];
  }
}
