import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/consumption.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { summary } from '../support/exchange-summary.ts';

const readings = {
  upstreamStates: () => ({}),
  books: () => ({ openHolds: 0, imbalanceNanos: 0, lowBalances: 0 }),
  settlementLagMs: () => 0,
  logLinesDropped: () => 0,
};

describe('an opened stream', () => {
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
  ])('whose request is %s is counted as %s, and is open no more', async (outcome, ending) => {
    const metrics = createMetrics(readings);
    metrics.streamOpened('chat');
    metrics.exchangeEnded({ ...summary, outcome });
    const { body } = await metrics.expose();
    expect(body.match(/^textgate_stream_endings_total\{.*/gm)).toEqual([
      `textgate_stream_endings_total{protocol="chat",ending="${ending}"} 1`,
    ]);
    expect(body).toContain('textgate_streams_open{protocol="chat"} 0');
  });
});
