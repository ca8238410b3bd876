/** The label values of one series, by the names of the labels. */
export type Labels = Readonly<Record<string, string>>;

/** One series of a metric: its labels, and the cell that holds its figures. */
interface OneSeries<Cell> {
  readonly labels: Labels;
  readonly cell: Cell;
}

/** A step of the search: what one label's values lead to. The last step has the cell. */
interface Step<Cell> {
  readonly next: Map<string, Step<Cell>>;
  cell: Cell | null;
}

/**
 * How many lines a metric has in a scrape, which blocks the event loop while it is written: some 50 ms for as many. All
 * further series share the one whose labels are all `other`.
 */
export const maxLines = 20_000;
const otherLabel = 'other';

/**
 * The series of one metric, in the order in which they were first used. They are found by one look-up for each label: a
 * request changes a dozen of them, and the library's search would build a text of all names and values for each.
 */
export class Series<Cell> {
  readonly all: OneSeries<Cell>[] = [];
  /** The names of the labels. */
  readonly names: readonly string[];
  readonly #create: () => Cell;
  readonly #limit: number;
  readonly #start: Step<Cell> = newStep();

  /** `linesEach` is how many lines of a scrape each series takes. */
  constructor(names: readonly string[], create: () => Cell, linesEach = 1) {
    this.names = names;
    this.#create = create;
    this.#limit = Math.floor(maxLines / linesEach);
  }

  /** The cell for label values, which are given in the order of the labels' names. */
  at(values: readonly string[]): Cell {
    let step: Step<Cell> | undefined = this.#start;
    for (const value of values) {
      step = step.next.get(value);
      if (step === undefined) return this.#add(values);
    }
    return step.cell ?? this.#add(values);
  }

  #add(values: readonly string[]): Cell {
    const isOther = values.every((value) => value === otherLabel);
    if (this.all.length >= this.#limit && !isOther) return this.at(values.map(() => otherLabel));
    let step = this.#start;
    for (const value of values) {
      const next = step.next.get(value) ?? newStep<Cell>();
      step.next.set(value, next);
      step = next;
    }
    const labels = Object.fromEntries(this.names.map((name, index) => [name, values[index] ?? '']));
    const cell = this.#create();
    this.all.push({ labels, cell });
    step.cell = cell;
    return cell;
  }
}

function newStep<Cell>(): Step<Cell> {
  return { next: new Map(), cell: null };
}
