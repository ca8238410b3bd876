import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startCollector } from '../support/otlp-collector.ts';
import type { CollectedSpan, OtlpCollector } from '../support/otlp-collector.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const prompt = 'canary-prompt';
const answer = 'canary-answer';
const body = { model: 'small', messages: [{ role: 'user', content: prompt }] };
const chat = '/v1/chat/completions';
const parent = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const traceparent = `00-${parent.traceId}-${parent.spanId}-01`;

let collector: OtlpCollector;
let upstream: ScriptedUpstream;
let second: ScriptedUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  [collector, upstream, second] = await Promise.all([startCollector(), startUpstream(), startUpstream()]);
  for (const provider of [upstream, second]) provider.play(sayTexts([answer, ' two']));
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
});
afterEach(async () => {
  await gateway.close();
  await Promise.all([collector.close(), upstream.close(), second.close()]);
  vi.unstubAllEnvs();
});

async function start(options: TestGatewayOptions = {}): Promise<void> {
  gateway = await startGateway({ upstreamUrl: upstream.url, ...options });
}

/** Sends a request, and reads all of the answer. */
async function ask(asked: object = body, headers: Record<string, string> = {}): Promise<Response> {
  const response = await gateway.post(chat, asked, { headers });
  await response.text().catch(() => '');
  return response;
}

/** The spans of the only request; asserts that the collector got no other spans. */
async function collect() {
  await gateway.close();
  const request = only(collector.spans.filter(({ kind }) => kind === 2));
  const children = collector.spans
    .filter((span) => span !== request)
    .toSorted((a, b) => Number(a.start - b.start));
  for (const child of children) {
    expect([child.traceId, child.parentSpanId]).toEqual([request.traceId, request.spanId]);
    expect(child.start).toBeGreaterThanOrEqual(request.start);
    expect(child.end).toBeGreaterThanOrEqual(child.start);
    expect(child.end).toBeLessThanOrEqual(request.end);
  }
  const attempts = children.filter(({ kind }) => kind === 3);
  return { request, attempts, names: children.map(({ name }) => name) };
}

function only(spans: readonly CollectedSpan[]): CollectedSpan {
  expect(spans).toHaveLength(1);
  return spans[0] as CollectedSpan;
}

describe('the trace of a request', () => {
  test('has the operation, the model and the result in attributes of the semantic conventions', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-tenant=seven');
    await start();
    const earliest = BigInt(Date.now()) * 1_000_000n;
    const response = await ask();
    const { request, attempts, names } = await collect();
    expect(names).toEqual(['admission', 'attempt local', 'settlement']);
    expect(request).toMatchObject({ name: 'chat small', parentSpanId: undefined, failed: false });
    expect(request.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': chat,
      'http.response.status_code': 200,
      'textgate.request_id': response.headers.get('x-request-id'),
      'textgate.outcome': 'completed',
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'small',
      'gen_ai.provider.name': 'local',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.cache_read.input_tokens': 0,
      'gen_ai.usage.cache_creation.input_tokens': 0,
      'gen_ai.usage.output_tokens': 7,
    });
    expect(only(attempts).attributes).toEqual({
      'gen_ai.provider.name': 'local',
      'gen_ai.request.model': 'tiny',
      'textgate.attempt.result': 'ok',
    });
    expect(request.start).toBeGreaterThanOrEqual(earliest);
    expect(request.end).toBeLessThanOrEqual(BigInt(Date.now() + 1) * 1_000_000n);
    expect(collector.resource['service.name']).toBe('textgate');
    expect(collector.headers[0]).toMatchObject({ 'x-tenant': 'seven', 'content-type': 'application/json' });
  });

  test('has the same operation for the other protocol, with its own route and the service’s name', async () => {
    vi.stubEnv('OTEL_SERVICE_NAME', 'front');
    await start();
    await gateway.client.responses.create({ model: 'small', input: prompt });
    const { request } = await collect();
    expect(request.name).toBe('chat small');
    expect(request.attributes).toMatchObject({
      'http.route': '/v1/responses',
      'gen_ai.operation.name': 'chat',
    });
    expect(collector.resource['service.name']).toBe('front');
  });

  test('has a span for every attempt, with the failed one before the successful one', async () => {
    upstream.play((response) => void response.destroy());
    await start({
      upstreams: { spare: { url: second.url } },
      routes: [
        { upstream: 'local', model: 'tiny' },
        { upstream: 'spare', model: 'large' },
      ],
    });
    await ask({ ...body, stream: true });
    const { request, attempts } = await collect();
    expect(attempts.map(({ name, failed, attributes }) => [name, failed, attributes['error.type']])).toEqual([
      ['attempt local', true, 'unanswered'],
      ['attempt spare', false, undefined],
    ]);
    expect(request).toMatchObject({ failed: false, attributes: { 'gen_ai.provider.name': 'spare' } });
    for (const [index, { seen }] of [upstream, second].entries())
      expect(seen[0]?.headers.traceparent).toBe(`00-${request.traceId}-${attempts[index]?.spanId}-01`);
  });

  test('continues the client’s trace, and is sent to the upstream with each attempt', async () => {
    await start();
    await ask(body, { traceparent, tracestate: 'vendor=1, other=2' });
    const { request, attempts } = await collect();
    expect(request).toMatchObject({ traceId: parent.traceId, parentSpanId: parent.spanId });
    expect(request.traceState).toBe('vendor=1,other=2');
    expect(upstream.seen[0]?.headers).toMatchObject({
      traceparent: `00-${parent.traceId}-${only(attempts).spanId}-01`,
      tracestate: 'vendor=1,other=2',
    });
  });

  test('is sent to the upstream without an invalid tracestate', async () => {
    await start();
    await ask(body, { traceparent, tracestate: 'canary' });
    await collect();
    expect(upstream.seen[0]?.headers.traceparent).toContain(parent.traceId);
    expect(upstream.seen[0]?.headers).not.toHaveProperty('tracestate');
  });

  test.each([
    ['is broken', 'not-a-traceparent'],
    ['is all zeros', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`],
    ['was sent twice', `${traceparent}, ${traceparent}`],
  ])("is a new one when the client's %s", async (_how, sent) => {
    await start();
    expect((await ask(body, { traceparent: sent, tracestate: 'vendor=1' })).status).toBe(200);
    const { request } = await collect();
    expect(request.parentSpanId).toBeUndefined();
    expect(request.traceId).not.toBe(parent.traceId);
    expect(upstream.seen[0]?.headers.tracestate).toBeUndefined();
  });

  test('is not recorded when the client’s trace is not sampled, but is still sent to the upstream', async () => {
    await start();
    await ask(body, { traceparent: traceparent.replace(/01$/, '00') });
    await gateway.close();
    expect(collector.bodies).toEqual([]);
    expect(upstream.seen[0]?.headers.traceparent).toMatch(new RegExp(`^00-${parent.traceId}-\\w{16}-00$`));
  });

  test('ends when the client disconnects, without an error status', async () => {
    upstream.play((response) => void sendStream(response, chatFrames([answer]).slice(0, 2)));
    await start();
    const leaving = new AbortController();
    const response = await gateway.post(chat, { ...body, stream: true }, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await eventually('the upstream call is over', () => upstream.running === 0);
    const { request, attempts } = await collect();
    expect(request).toMatchObject({ failed: false, attributes: { 'textgate.outcome': 'client_closed' } });
    expect(request.attributes['error.type']).toBeUndefined();
    expect(only(attempts).attributes['textgate.attempt.result']).toBe('interrupted');
  });

  test('has the code of a refusal, without an error status', async () => {
    await start();
    await ask({ ...body, tools: [{ type: 'function' }] });
    const { request, names } = await collect();
    expect(names).toEqual(['admission', 'settlement']);
    expect(request).toMatchObject({ name: chat, failed: false });
    expect(request.attributes).toMatchObject({
      'error.type': 'unsupported_parameter',
      'http.response.status_code': 400,
      'textgate.outcome': 'refused',
    });
  });

  test('is named by its route alone for an unknown key or model', async () => {
    await start();
    await ask({ ...body, model: `canary-model` });
    await ask(body, { authorization: 'Bearer canary-key' });
    await gateway.close();
    const requests = collector.spans.filter(({ kind }) => kind === 2);
    expect(requests.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      [chat, 'model_not_found'],
      [chat, 'invalid_api_key'],
    ]);
    expect(collector.bodies.join('')).not.toContain('canary');
  });

  test('has an error status for a stream that breaks off after status 200', async () => {
    upstream.play((response) => void sendStream(response, chatFrames([answer]).slice(0, 2)).end());
    await start();
    await ask({ ...body, stream: true });
    const { request, attempts } = await collect();
    expect(request).toMatchObject({
      failed: true,
      attributes: { 'http.response.status_code': 200, 'error.type': 'upstream_truncated' },
    });
    expect(only(attempts)).toMatchObject({ failed: true, attributes: { 'error.type': 'truncated' } });
  });

  test('has the wait for a slot in its admission span', async () => {
    let finish = (): void => {};
    upstream.play((response, request) => void (finish = () => void sayTexts([answer])(response, request)));
    await start({ limits: { concurrency: 1, queueWait: '5s' } });
    const first = ask();
    await eventually('the first one has the slot', () => upstream.seen.length === 1);
    const waiting = ask();
    await eventually(
      'the second one waits',
      async () => (await gateway.gateway.inFlight()).data.length === 2,
    );
    const waitsFromMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 60));
    const waitedMs = performance.now() - waitsFromMs;
    const finishFirst = finish;
    upstream.play(sayTexts([answer]));
    finishFirst();
    await Promise.all([first, waiting]);
    await gateway.close();
    const waits = collector.spans
      .filter(({ name }) => name === 'admission')
      .map(({ start: from, end }) => Number(end - from) / 1_000_000);
    // On a busy machine the first one may take its time, too: no more than it waits for is in the second one's span alone.
    expect(Math.max(...waits)).toBeGreaterThan(waitedMs - 1);
    expect(Math.min(...waits)).toBeLessThan(waitedMs);
  });

  test('is named by the path for a passthrough request, and sent to the upstream', async () => {
    upstream.play((response) => void response.end('[1]'));
    await start({ passthrough: [{ path: '/tokenize', upstream: 'local' }] });
    await (await gateway.post('/tokenize?secret=canary', '{}', { headers: { traceparent } })).text();
    const { request, attempts } = await collect();
    expect(request.name).toBe('/tokenize');
    expect(Object.keys(request.attributes).filter((name) => name.startsWith('gen_ai'))).toEqual([]);
    expect(upstream.seen[0]?.headers.traceparent).toBe(`00-${parent.traceId}-${only(attempts).spanId}-01`);
  });

  test('contains no prompt, answer, key or address', async () => {
    upstream.play((response) => void response.writeHead(500).end('{"error":{"message":"canary-error"}}'));
    await start({
      upstreams: { spare: { url: second.url, apiKey: 'sk-canary' } },
      routes: [
        { upstream: 'local', model: 'tiny' },
        { upstream: 'spare', model: 'large' },
      ],
    });
    await ask({ ...body, stream: true, user: 'canary-user', metadata: { a: 'canary-metadata' } });
    await ask({ ...body, 'canary-field': 1 });
    await gateway.close();
    const sent = collector.bodies.join('');
    expect(sent).toContain('chat small');
    for (const secret of [
      'canary',
      gateway.key,
      gateway.key.slice(6),
      'sk-',
      '127.0.0.1',
      upstream.url,
      second.url,
    ])
      expect(sent).not.toContain(secret);
  });
});
