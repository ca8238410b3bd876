import { describe, expect, test } from 'vitest';
import type { LedgerFigures } from '../../src/background/monitor-ledger.ts';
import type { Outcome } from '../../src/domain/money/consumption.ts';
import { upstream } from '../../src/config/schema/upstream-schema.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { summary } from '../support/exchange-summary.ts';
import { noSources } from '../support/metric-sources.ts';

test('the figures of a shared ledger are shown by the process that audits it, and by no other', async () => {
  const metrics = createMetrics();
  let figures: LedgerFigures | null = {
    openHolds: 3,
    imbalanceNanos: null,
    lowBalances: 2,
    warnedBudgets: 4,
  };
  metrics.attach({ ...noSources, ledgerFigures: () => figures });
  const shown = async () =>
    (await metrics.expose()).body.match(
      /^textgate_(holds_outstanding|ledger_imbalance_nanos|keys_low_balance) .+$/gm,
    );
  const all = [
    'textgate_holds_outstanding 3',
    'textgate_ledger_imbalance_nanos Nan',
    'textgate_keys_low_balance 2',
  ];
  expect(await shown()).toEqual(all);
  figures = null;
  expect(await shown()).toBeNull();
  figures = { openHolds: 3, imbalanceNanos: null, lowBalances: 2, warnedBudgets: 4 };
  expect(await shown()).toEqual(all);
});

test('the metrics of a feature are there once they are added, and are read at each scrape', async () => {
  const metrics = createMetrics();
  const series: { labels: { model: string }; value: number }[] = [];
  const shown = async () => (await metrics.expose()).body.match(/^.*own_ratio.*$/gm);
  expect(await shown()).toBeNull();
  metrics.add(({ collectedGauge }) =>
    collectedGauge(['model'], 'own_ratio', 'A ratio.', 'max', () => series),
  );
  const head = ['# HELP own_ratio A ratio.', '# TYPE own_ratio gauge'];
  expect(await shown()).toEqual(head);
  series.push({ labels: { model: 'small' }, value: 2 }, { labels: { model: 'large' }, value: 3 });
  expect(await shown()).toEqual([...head, 'own_ratio{model="small"} 2', 'own_ratio{model="large"} 3']);
  series.shift();
  expect(await shown()).toEqual([...head, 'own_ratio{model="large"} 3']);
});

/** The default time-outs of a call, in milliseconds. */
const { timeouts } = upstream.parse({ url: 'http://127.0.0.1:1/v1' });

test.each([
  ['gen_ai_server_time_to_first_token_seconds', timeouts.firstByte, 160],
  ['gen_ai_server_request_duration_seconds', timeouts.total, 655.36],
  ['gen_ai_server_time_per_output_token_seconds', timeouts.idle, 60],
])(
  '%s has a bucket for times just below the time-out, and one that ends before them',
  async (name, ms, bound) => {
    const metrics = createMetrics();
    const totalMs = name.includes('first') ? ms : ms - 10;
    const firstTextMs = name.includes('first') ? ms - 10 : 0;
    const usage = {
      inputTokens: 1,
      outputTokens: 2,
      cachedInputTokens: 0,
      totalTokens: 3,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    };
    metrics.exchangeEnded({ ...summary, totalMs, firstTextMs, usage });
    const { body } = await metrics.expose();
    const counts = [...body.matchAll(new RegExp(`^${name}_bucket{.*le="([^"]+)".*} (\\d+)$`, 'gm'))];
    const within = counts.filter(([, , count]) => count === '1').map(([, le]) => le);
    expect(within[0]).toBe(String(bound));
    expect(counts.at(-within.length - 1)?.[1]).not.toBe('+Inf');
    // A quantile is interpolated within a bucket: a wide one would make it a guess.
    expect(bound / Number(counts.at(-within.length - 1)?.[1])).toBeLessThanOrEqual(6);
  },
);

describe('the metrics of an opened stream', () => {
  test.each<[Outcome, string]>([
    ['completed', 'completed'],
    ['incomplete', 'incomplete'],
    ['upstream_failed', 'upstream_failed'],
    ['upstream_truncated', 'upstream_truncated'],
    ['first_byte_timeout', 'idle_timeout'],
    ['idle_timeout', 'idle_timeout'],
    ['total_timeout', 'total_timeout'],
    ['client_closed', 'client_closed'],
    ['cancelled', 'cancelled'],
    ['drained', 'drained'],
    ['server_error', 'server_error'],
  ])('count outcome %s as ending %s and the stream as closed', async (outcome, ending) => {
    const metrics = createMetrics();
    metrics.streamOpened('chat');
    metrics.exchangeEnded({ ...summary, outcome });
    const { body } = await metrics.expose();
    expect(body.match(/^textgate_stream_endings_total\{.*/gm)).toEqual([
      `textgate_stream_endings_total{protocol="chat",ending="${ending}"} 1`,
    ]);
    expect(body).toContain('textgate_streams_open{protocol="chat"} 0');
  });
});
