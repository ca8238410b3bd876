import type { Metric, Registry } from 'prom-client';
import type { Distribution } from './cells.ts';
import type { Labels, Series } from './series.ts';

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
): void {
  const head = { name, help, type, aggregator: 'sum' };
  const metric = { ...head, labelNames, get: async () => ({ ...head, values: read() }) };
  // A registry uses a metric's name and `get` alone, and the documentation its labels; the declared type has more.
  registry.registerMetric(metric as unknown as Metric);
}

const noLabels: Line['labels'] = {};

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
