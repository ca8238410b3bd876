import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { exposeSum, readFigures, sumCounts } from '../../src/telemetry/metrics/metric-sums.ts';
import type { MetricsText } from '../../src/telemetry/metrics/metric-sums.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { summary } from '../support/exchange-summary.ts';

/** The figures of a process with a counter, a histogram and gauges. */
function figures(count: number, gauges: Readonly<Record<string, number>> = {}): Promise<MetricsText> {
  const registry = new Registry();
  const registers = [registry];
  const counter = new Counter({ name: 'counted_total', help: 'x', labelNames: ['kind'], registers });
  counter.inc({ kind: 'one' }, count);
  const histogram = new Histogram({ name: 'took_seconds', help: 'x', buckets: [1], registers });
  histogram.observe(count);
  for (const [name, value] of Object.entries(gauges)) new Gauge({ name, help: 'x', registers }).set(value);
  return readFigures(registry);
}

test('counters, histograms and numbers of things are added up', async () => {
  const both = await Promise.all([
    figures(1, { textgate_requests_in_flight: 2 }),
    figures(5, { textgate_requests_in_flight: 3 }),
  ]);
  const text = await exposeSum(both, null);
  expect(text).toContain('counted_total{kind="one"} 6\n');
  expect(text).toContain('took_seconds_bucket{le="1"} 1\n');
  expect(text).toContain('took_seconds_bucket{le="+Inf"} 2\n');
  expect(text).toContain('took_seconds_sum 6\n');
  expect(text).toContain('textgate_requests_in_flight 5\n');
});

test('a gauge of a feature says itself how those of several processes become one', async () => {
  const texts = [1, 5].map((value) => {
    const metrics = createMetrics();
    metrics.add(({ collectedGauge }) => {
      for (const combination of ['average', 'max', 'min', 'sum'] as const)
        collectedGauge(['kind'], `own_${combination}`, 'x', combination, () => [
          { labels: { kind: 'one' }, value },
        ]);
    });
    return metrics.figures();
  });
  const text = await exposeSum(await Promise.all(texts), null);
  expect(text.match(/^own_.*/gm)).toEqual([
    'own_average{kind="one"} 3',
    'own_max{kind="one"} 5',
    'own_min{kind="one"} 1',
    'own_sum{kind="one"} 6',
  ]);
});

test('states and delays are those of the worst process', async () => {
  const all = await Promise.all([
    figures(1, {
      textgate_upstream_state: 2,
      textgate_ledger_lag_seconds: 0,
      nodejs_eventloop_lag_p99_seconds: 0.5,
    }),
    figures(1, {
      textgate_upstream_state: 0,
      textgate_ledger_lag_seconds: 7,
      nodejs_eventloop_lag_p99_seconds: 0.1,
    }),
  ]);
  const text = await exposeSum(all, null);
  expect(text).toContain('textgate_upstream_state 0\n');
  expect(text).toContain('textgate_ledger_lag_seconds 7\n');
  expect(text).toContain('nodejs_eventloop_lag_p99_seconds 0.5\n');
});

test('the newest root is that of the process with the newest one, though two show one for a moment', async () => {
  const all = await Promise.all([
    figures(1, { textgate_ledger_root_number: 7, textgate_ledger_root_age_seconds: 3_700 }),
    figures(1, { textgate_ledger_root_number: 8, textgate_ledger_root_age_seconds: 20 }),
  ]);
  const text = await exposeSum(all, null);
  expect(text).toContain('textgate_ledger_root_number 8\n');
  expect(text).toContain('textgate_ledger_root_age_seconds 20\n');
});

test('figures that one process has of the shared database stay as they are, also NaN', async () => {
  const all = await Promise.all([
    figures(1, { textgate_holds_outstanding: 4, textgate_ledger_imbalance_nanos: Number.NaN }),
    figures(1),
  ]);
  const text = await exposeSum(all, null);
  expect(text).toContain('textgate_holds_outstanding 4\n');
  expect(text).toContain('textgate_ledger_imbalance_nanos Nan\n');
});

test('what ended processes have counted stays in the sum, and their gauges do not', async () => {
  const ended = await sumCounts([
    await figures(10, { textgate_requests_in_flight: 9 }),
    await figures(20, { textgate_requests_in_flight: 9 }),
  ]);
  const text = await exposeSum([await figures(1, { textgate_requests_in_flight: 1 })], ended);
  expect(text).toContain('counted_total{kind="one"} 31\n');
  expect(text).toContain('took_seconds_count 3\n');
  expect(text).toContain('textgate_requests_in_flight 1\n');
});

test('the sum of one process has the same lines as that process alone', async () => {
  const metrics = createMetrics();
  metrics.exchangeBegan('chat');
  metrics.exchangeEnded(summary);
  metrics.connectionRefused('evicted');
  // Those of the process itself change from one scrape to the next.
  const linesOf = (text: string) =>
    text
      .split('\n')
      .filter((line) => /^(textgate|gen_ai)_/.test(line))
      .map((line) =>
        line.replace(/\{(.*)\}/, (_all, labels: string) => `{${labels.split(',').toSorted().join()}}`),
      )
      .toSorted();
  const alone = linesOf((await metrics.expose()).body);
  expect(alone.length).toBeGreaterThan(50);
  expect(linesOf(await exposeSum([await metrics.figures()], null))).toEqual(alone);
});
