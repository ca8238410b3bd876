import { AggregatorRegistry } from 'prom-client';
import type { Registry } from 'prom-client';

/** One line of a metric. */
interface Line {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels?: Readonly<Record<string, string | number>>;
  readonly metricName?: string;
  readonly value: number | string;
}

/** The figures of one metric of a process. */
interface Figures {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** How the metric itself says that those of several processes become one. */
  readonly aggregator: string;
  readonly values: readonly Line[];
}

/** The metrics of a process, or of several: text, so that it can travel between processes. */
export type MetricsText = string & { readonly kind?: 'metrics' };

/**
 * How the gauges of several processes become one that Node's figures are, where that is not their sum: those of the service say
 * it themselves. Counters and histograms are always added up.
 */
const combinations: readonly (readonly [name: RegExp, aggregator: 'min' | 'max' | 'first'])[] = [
  [/^nodejs_eventloop_lag_min_seconds$/, 'min'],
  [/^nodejs_eventloop_lag_/, 'max'],
  [/^process_start_time_seconds$/, 'min'],
  [/^process_max_fds$/, 'min'],
  [/^nodejs_version_info$/, 'first'],
];

/** What the metrics of a registry are now. */
export async function readFigures(registry: Registry): Promise<MetricsText> {
  return JSON.stringify(await registry.getMetricsAsJSON(), withEveryNumber);
}

/** JSON has no NaN, which is the value of a gauge whose figure could not be found out. */
function withEveryNumber(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** Adds up what only grows: what a process has counted must stay in the sum when the process has ended. */
export async function sumCounts(texts: readonly MetricsText[]): Promise<MetricsText> {
  const counts = texts.map((text) => figuresIn(text).filter(({ type }) => type !== 'gauge'));
  return readFigures(combine(counts));
}

/** The exposition of the metrics of several processes, and of what was counted by others that have ended. */
export async function exposeSum(texts: readonly MetricsText[], ended: MetricsText | null): Promise<string> {
  const all = texts.map(figuresIn);
  // Behind the others, whose help texts count: those of an older version may differ.
  return combine(ended === null ? all : [...all, figuresIn(ended)]).metrics();
}

function combine(processes: readonly (readonly Figures[])[]): Registry {
  // The library's types have only one way to combine all metrics of a registry.
  return AggregatorRegistry.aggregate(processes as unknown as object[]);
}

function figuresIn(text: MetricsText): readonly Figures[] {
  return (JSON.parse(text) as readonly Figures[]).map(({ name, help, type, aggregator, values }) => ({
    name,
    help,
    type,
    aggregator:
      type === 'gauge' ? (combinations.find(([pattern]) => pattern.test(name))?.[1] ?? aggregator) : 'sum',
    // The library combines lines by `labels` alone.
    values: values.map(({ labels, sharedLabels, metricName, value }) => ({
      labels: { ...sharedLabels, ...labels },
      ...(metricName === undefined ? {} : { metricName }),
      value: Number(value),
    })),
  }));
}
