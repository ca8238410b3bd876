import { Counter, Gauge } from 'prom-client';
import type { Registry, Metric } from 'prom-client';

/** What makes the metrics of a registry. */
export type Constructors = ReturnType<typeof constructorsFor>;

/** How the gauges of several processes become one. */
export type Combination = 'sum' | 'average' | 'max' | 'min';

/** A series as it is read at a scrape. */
export interface ReadSeries<Name extends string> {
  readonly labels: Readonly<Record<Name, string>>;
  readonly value: number;
}

/** One value for each of these labels, in their order. */
type ValuesOf<Names extends readonly string[]> = { readonly [Index in keyof Names]: string };

/** The lines of a histogram's series beside one for each bound: the last bucket, the sum and the count. */
const linesBesideBounds = 3;

/**
 * Constructors of metrics. Those with labels yield a function from label values, in declared order, to the cell that
 * requests change: its figures are plain numbers, which the registry reads at a scrape.
 */
export function constructorsFor(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string, combination: Combination) =>
    new Gauge({ name, help, registers, aggregator: combination });
  return {
    counter,
    gauge,
    /**
     * A gauge whose series are those that `read` returns at a scrape, and no others. `combination` is how those of several
     * processes become one.
     */
    collectedGauge: <const Names extends readonly string[]>(
      labelNames: Names,
      name: string,
      help: string,
      combination: Combination,
      read: () => Iterable<ReadSeries<Names[number]>>,
    ): void => register(registry, 'gauge', { name, help }, labelNames, () => linesOf(read()), combination),
    /** A counter without labels that `read` returns at a scrape. */
    collectedCounter: (name: string, help: string, read: () => Iterable<ReadSeries<never>>): void =>
      register(registry, 'counter', { name, help }, [], () => linesOf(read())),
    counterBy: <const Names extends readonly string[]>(labelNames: Names, name: string, help: string) => {
      const series = new Series(labelNames, () => new Tally());
      registerNumbers(registry, 'counter', { name, help }, series);
      return Object.assign((...values: ValuesOf<Names>) => series.at(values), { series });
    },
    gaugeBy: <const Names extends readonly string[]>(labelNames: Names, name: string, help: string) => {
      const series = new Series(labelNames, () => new Level());
      registerNumbers(registry, 'gauge', { name, help }, series);
      return (...values: ValuesOf<Names>) => series.at(values);
    },
    histogramBy: <const Names extends readonly string[]>(
      labelNames: Names,
      name: string,
      help: string,
      bounds: readonly number[],
    ) => {
      const series = new Series(
        labelNames,
        () => new Distribution(bounds),
        bounds.length + linesBesideBounds,
      );
      registerDistributions(registry, { name, help }, bounds, series);
      return (...values: ValuesOf<Names>) => series.at(values);
    },
  };
}

/** The label values of one series, by the names of the labels. */
type Labels = Readonly<Record<string, string>>;

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

/** One line of the exposition. The library writes `sharedLabels` behind `labels`, and keeps their text for the next scrape. */
interface Line {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

/** What the head of a metric says. */
interface MetricHead {
  readonly name: string;
  readonly help: string;
}

/** Adds a metric whose figures are kept here to a registry, which reads and writes them at every scrape. */
function register(
  registry: Registry,
  type: 'counter' | 'gauge' | 'histogram',
  { name, help }: MetricHead,
  labelNames: readonly string[],
  read: () => readonly Line[],
  aggregator: Combination = 'sum',
): void {
  const head = { name, help, type, aggregator };
  const metric = { ...head, labelNames, get: async () => ({ ...head, values: read() }) };
  // A registry uses a metric's name and `get` alone, and the documentation its labels; the declared type has more.
  registry.registerMetric(metric as unknown as Metric);
}

const noLabels: Labels = {};

/** The lines of series that are read at a scrape. */
function linesOf(series: Iterable<ReadSeries<string>>): readonly Line[] {
  return Array.from(series, ({ labels, value }) => ({ labels, sharedLabels: noLabels, value }));
}

/** Registers a metric with one number per series. */
export function registerNumbers(
  registry: Registry,
  type: 'counter' | 'gauge',
  head: MetricHead,
  series: Series<{ readonly value: number }>,
): void {
  register(registry, type, head, series.names, () =>
    series.all.map(({ labels, cell }) => ({
      labels: noLabels,
      sharedLabels: labels,
      value: cell.value,
    })),
  );
}

/** Registers a histogram. */
export function registerDistributions(
  registry: Registry,
  head: MetricHead,
  bounds: readonly number[],
  series: Series<Distribution>,
): void {
  const bucketLabels: readonly Line['labels'][] = [...bounds.map((le) => ({ le })), { le: '+Inf' }];
  const [bucket, sum, count] = [`${head.name}_bucket`, `${head.name}_sum`, `${head.name}_count`];
  register(registry, 'histogram', head, series.names, () => {
    const lines: Line[] = [];
    for (const { labels: sharedLabels, cell } of series.all) {
      let total = 0;
      for (const [index, labels] of bucketLabels.entries()) {
        total += cell.counts[index] ?? 0;
        lines.push({ labels, sharedLabels, value: total, metricName: bucket });
      }
      lines.push({ labels: noLabels, sharedLabels, value: cell.sum, metricName: sum });
      lines.push({ labels: noLabels, sharedLabels, value: total, metricName: count });
    }
    return lines;
  });
}
