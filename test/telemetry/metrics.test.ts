import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/consumption.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { summary } from '../support/exchange-summary.ts';

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
