import { describe, expect, test } from 'vitest';
import type { LedgerFigures } from '../../src/background/monitor-ledger.ts';
import type { Outcome } from '../../src/domain/money/consumption.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { summary } from '../support/exchange-summary.ts';

test('the figures of a shared ledger are shown by the process that audits it, and by no other', async () => {
  const metrics = createMetrics();
  let figures: LedgerFigures | null = {
    openHolds: 3,
    imbalanceNanos: null,
    lowBalances: 2,
    warnedBudgets: 4,
  };
  metrics.attach({
    rooms: () => [],
    upstreamStates: () => ({}),
    modelAvailability: () => [],
    ledgerFigures: () => figures,
    settlementLagMs: () => 0,
    oldestRecordAgeMs: () => null,
    oldestEventAgeMs: () => null,
    usageDrift: () => [],
    topKeys: () => [],
    ledgerRoot: () => null,
    logLinesDropped: () => 0,
  });
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
