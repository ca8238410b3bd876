import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import type { MetricSources } from '../../src/telemetry/metrics/figures.ts';
import { exposeSum, readFigures, sumCounts } from '../../src/telemetry/metrics/metric-sums.ts';
import type { MetricsText } from '../../src/telemetry/metrics/metric-sums.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { summary } from '../support/exchange-summary.ts';
import { noSources } from '../support/metric-sources.ts';

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

/** The figures of a process whose sources say so; others are those of a process without anything to show. */
function sourced(said: Partial<MetricSources>): Promise<MetricsText> {
  const metrics = createMetrics();
  metrics.attach({ ...noSources, ...said });
  return metrics.figures();
}

/** What two processes show together of some metrics, without the names' common beginning. */
async function together(
  one: Partial<MetricSources>,
  other: Partial<MetricSources>,
  shown: string,
): Promise<readonly string[]> {
  const text = await exposeSum(await Promise.all([sourced(one), sourced(other)]), null);
  return text.match(new RegExp(`^textgate_(${shown})[{ ].*$`, 'gm')) ?? [];
}

test('states and delays are those of the worst process', async () => {
  const well: Partial<MetricSources> = {
    upstreamStates: () => ({ local: 'closed' }),
    upstreamModelStates: () => [{ upstream: 'local', model: 'm', state: 'closed' }],
    modelAvailability: () => [['m', true]],
    settlementLagMs: () => 0,
    isDatabaseUsable: () => true,
  };
  const ill: Partial<MetricSources> = {
    upstreamStates: () => ({ local: 'open' }),
    upstreamModelStates: () => [{ upstream: 'local', model: 'm', state: 'half_open' }],
    modelAvailability: () => [['m', false]],
    settlementLagMs: () => 7_000,
    isDatabaseUsable: () => false,
  };
  const names = 'upstream_state|upstream_model_state|model_available|ledger_lag_seconds|database_usable';
  for (const both of [[well, ill] as const, [ill, well] as const])
    expect(await together(...both, names)).toEqual([
      'textgate_upstream_state{upstream="local"} 0',
      'textgate_upstream_model_state{upstream="local",model="m"} 1',
      'textgate_model_available{model="m"} 0',
      'textgate_ledger_lag_seconds 7',
      'textgate_database_usable 0',
    ]);
  const lags = [0.5, 0.1].map((lag) => figures(1, { nodejs_eventloop_lag_p99_seconds: lag }));
  expect(await exposeSum(await Promise.all(lags), null)).toContain('nodejs_eventloop_lag_p99_seconds 0.5\n');
});

test('a certificate ends when the first of those of all processes does', async () => {
  const texts = [3_000, 2_000].map((endMs) => {
    const metrics = createMetrics();
    metrics.certificateEnds(endMs);
    return metrics.figures();
  });
  const text = await exposeSum(await Promise.all(texts), null);
  expect(text).toContain('textgate_tls_certificate_not_after_seconds 2\n');
});

test('the newest root is that of the process with the newest one, though two show one for a moment', async () => {
  const before = { number: 7, madeAtMs: 0, ageMs: 3_700_000 };
  const newest = { number: 8, madeAtMs: 0, ageMs: 20_000 };
  expect(
    await together({ ledgerRoot: () => before }, { ledgerRoot: () => newest }, 'ledger_root_\\w+'),
  ).toEqual(['textgate_ledger_root_number 8', 'textgate_ledger_root_age_seconds 20']);
});

test('what a key was charged is not added up while two processes show it', async () => {
  const key = { keyId: 'key_a', keyName: 'a' };
  const shown = await together(
    { topKeys: () => [{ ...key, chargeNanos: 5n }], topGroups: () => [{ group: 'g', chargeNanos: 9n }] },
    { topKeys: () => [{ ...key, chargeNanos: 7n }], topGroups: () => [{ group: 'g', chargeNanos: 8n }] },
    'top_\\w+',
  );
  expect(shown).toEqual([
    'textgate_top_keys_charged_today_nanos{key_id="key_a",key_name="a"} 7',
    'textgate_top_groups_charged_today_nanos{group="g"} 9',
  ]);
});

test('figures that one process has of the shared database stay as they are, also NaN, and those of each add up', async () => {
  const ledger = { openHolds: 4, imbalanceNanos: null, lowBalances: 1, warnedBudgets: 2 };
  const one: Partial<MetricSources> = {
    ledgerFigures: () => ledger,
    oldestRecordAgeMs: () => 5_000,
    logLinesDropped: () => 3,
  };
  const names =
    'holds_outstanding|ledger_imbalance_nanos|keys_low_balance|budgets_warned|oldest_record\\w+|log_lines\\w+';
  expect((await together(one, { logLinesDropped: () => 4 }, names)).toSorted()).toEqual([
    'textgate_budgets_warned 2',
    'textgate_holds_outstanding 4',
    'textgate_keys_low_balance 1',
    'textgate_ledger_imbalance_nanos Nan',
    'textgate_log_lines_dropped_total 7',
    'textgate_oldest_record_age_seconds 5',
  ]);
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
