import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startCollector } from '../support/otlp-collector.ts';
import type { OtlpCollector } from '../support/otlp-collector.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let collector: OtlpCollector;
let upstream: ScriptedUpstream;
beforeEach(async () => {
  [collector, upstream] = await Promise.all([startCollector(), startUpstream()]);
  upstream.play(sayTexts(['x']));
});
afterEach(async () => {
  await Promise.all([collector.close(), upstream.close()]);
  vi.unstubAllEnvs();
});

/** Sends one request through a new gateway, closes the gateway, and returns the headers that the upstream got. */
async function askOnce(): Promise<{ readonly status: number; readonly closingMs: number }> {
  const gateway = await startGateway({ upstreamUrl: upstream.url });
  const headers = { traceparent, tracestate: 'vendor=1' };
  const response = await gateway.post('/v1/chat/completions', body, { headers });
  await response.text();
  const closedMs = performance.now();
  await gateway.close();
  return { status: response.status, closingMs: performance.now() - closedMs };
}

describe('the gateway without a collector in the environment', () => {
  test.each([
    ['no variable is set', {}],
    ['the endpoint is blank', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    [
      'the exporter of traces is none',
      { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' },
    ],
    ['the SDK is disabled', { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }],
  ])('sends no span, and no trace headers to the upstream: %s', async (_case, variables) => {
    for (const [name, value] of Object.entries(variables))
      vi.stubEnv(name, value === 'collector' ? collector.url : value);
    expect((await askOnce()).status).toBe(200);
    expect(collector.bodies).toEqual([]);
    expect(upstream.seen[0]?.headers).not.toHaveProperty('traceparent');
    expect(upstream.seen[0]?.headers).not.toHaveProperty('tracestate');
  });
});

test('the endpoint of traces alone is the whole address to which they go, before that of all signals', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1');
  vi.stubEnv('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', `${collector.url}/v1/traces`);
  await askOnce();
  expect(collector.spans.map(({ name }) => name)).toContain('chat small');
});

describe('the collector', () => {
  beforeEach(() => vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url));

  test('gets spans while the gateway runs', async () => {
    const gateway = await startGateway({ upstreamUrl: upstream.url });
    await (await gateway.post('/v1/chat/completions', body)).text();
    await eventually('spans have arrived', () => collector.spans.length > 0);
    await gateway.close();
  });

  test('gets the last spans when the gateway closes', async () => {
    await askOnce();
    expect(collector.spans.map(({ name }) => name)).toContain('chat small');
  });

  test.each([
    ['answers nothing', null],
    ['is overloaded', 503],
  ])('delays no request when it %s, and the close by at most 3 s', async (_case, status) => {
    collector.status = status;
    const { status: answered, closingMs } = await askOnce();
    expect(answered).toBe(200);
    expect(closingMs).toBeGreaterThan(2_500);
    // Three seconds, with a margin for a machine under load; without the bound it is the ten of an export.
    expect(closingMs).toBeLessThan(8_000);
  });

  test('delays no request when it is unavailable, and gets nothing more from a closed gateway', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:1');
    const { status, closingMs } = await askOnce();
    expect(status).toBe(200);
    // Three seconds, with a margin for a machine under load; without the bound it is the ten of an export.
    expect(closingMs).toBeLessThan(8_000);
  });

  test.each([
    ['with an invalid address', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }],
    ['with an invalid address of traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4318' }],
    ['with a protocol that is not spoken', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['with an exporter that is not there', { OTEL_TRACES_EXPORTER: 'console' }],
    ['with an unknown sampler', { OTEL_TRACES_SAMPLER: 'sometimes' }],
  ])('%s disables tracing, and requests are served', async (_case, variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    expect((await askOnce()).status).toBe(200);
    expect(collector.bodies).toEqual([]);
    expect(upstream.seen[0]?.headers).not.toHaveProperty('traceparent');
  });

  test('gets nothing when the sampler drops all traces', async () => {
    vi.stubEnv('OTEL_TRACES_SAMPLER', 'traceidratio');
    vi.stubEnv('OTEL_TRACES_SAMPLER_ARG', '0');
    expect((await askOnce()).status).toBe(200);
    expect(collector.bodies).toEqual([]);
  });
});
