import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { findCanaries, plant } from '../support/canaries.ts';
import { startCollector } from '../support/otlp-collector.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

const prompt = 'canary-of-the-prompt';
const answer = 'canary-of-the-answer';
const theirs = 'canary-of-the-upstream';
const json = { 'content-type': 'application/json' };
const sse = { 'content-type': 'text/event-stream' };
const [opening = '', first = ''] = chatFrames([answer, 'more']);
plant(answer, theirs);

/** An error in the words of an upstream, with a secret word wherever one may be. */
const saidOfError = JSON.stringify({
  error: {
    message: `"${prompt}" is bad: key sk-${theirs}, see https://${theirs}.example.com or ${theirs}@example.com, org-${theirs}, /srv/${theirs}/log`,
    code: `sk-${theirs}`,
    input: [prompt, theirs],
  },
});

/** Every behaviour of an upstream, each with a secret word that must not appear in any output. */
const scripts: readonly ((response: ServerResponse) => void | Promise<void>)[] = [
  (response) => void response.writeHead(200, json).end(saidOfError),
  (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(`<html>${theirs}`),
  (response) => void response.writeHead(200, sse).end(`data: {"${theirs}\n\n`),
  (response) => void response.writeHead(200, sse).end(`event: ${theirs}\ndata: {}\n\n`),
  (response) => void response.writeHead(200, sse).end(`${opening}${first}data: ${saidOfError}\n\n`),
  (response) => void response.writeHead(200, sse).end(opening + first),
  (response) => {
    sendStream(response, [opening, first]);
    setImmediate(() => cut(response, 'rst'));
  },
  (response) => void response.writeHead(200, { 'content-type': theirs }).end(theirs),
  (response) =>
    void response
      .writeHead(200, json)
      .end(
        `{"choices":[{"message":{"tool_calls":[{"function":{"name":"${theirs}","arguments":"${answer}"}}]}}]}`,
      ),
  (response) =>
    void response
      .writeHead(200, json)
      .end(`{"choices":[{"message":{"content":"${answer}"},"finish_reason":"${theirs}"}]}`),
  (response) => void response.destroy(),
  () => {},
  ...[400, 401, 403, 404, 422, 429, 500, 503].map(
    (status) => (response: ServerResponse) =>
      void response
        .writeHead(status, { ...json, 'x-request-id': theirs, 'www-authenticate': theirs })
        .end(saidOfError),
  ),
];

/** Refused requests, with a secret word of the client in every field. */
const refusals: readonly object[] = [
  {
    messages: [{ role: 'user', content: prompt }],
    tools: [{ type: 'function', function: { name: prompt } }],
  },
  { messages: [{ role: 'user', content: prompt }], stop: [prompt] },
  { messages: [{ role: 'user', content: prompt }], temperature: prompt },
  { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: prompt } }] }] },
  { messages: [{ role: 'tool', content: prompt }] },
  { messages: prompt },
  { messages: [{ role: 'user', content: prompt }], metadata: { a: { b: prompt } } },
];

test('the words of clients and upstreams appear in no log, metric, trace, error or database', async () => {
  const collector = await startCollector();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
  const upstream = await startUpstream();
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    storage: join(makeTemporaryFolder(), 'textgate.db'),
    price: { input: '1', output: '2' },
    limits: { requestsPerMinute: 1_000_000, concurrency: 100 },
    timeouts: { firstByte: '100ms', idle: '100ms', total: '300ms' },
    passthrough: [{ path: '/tokenize', upstream: 'local' }],
  });
  const { secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
  const headers = {
    authorization: `Bearer ${secret}`,
    'x-note': prompt,
    traceparent: prompt,
    cookie: prompt,
  };
  const asked = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: prompt }] }],
    ['/v1/responses', { input: prompt, instructions: prompt, metadata: { note: prompt }, user: prompt }],
    ['/tokenize', { content: prompt }],
  ] as const;

  const outcomes = new Map<string, number>();
  const send = async (path: string, body: object, signal?: AbortSignal): Promise<void> => {
    const init = { headers, ...(signal === undefined ? {} : { signal }) };
    const text = await gateway.post(path, { model: 'small', ...body }, init).then(
      (response) => response.text().catch(() => ''),
      () => '',
    );
    // A passthrough answer holds the upstream's words; the gateway's own words are only in error objects.
    const errors = path === '/tokenize' ? [] : (text.match(/"error":\{[^}]*\}/g) ?? []);
    findCanaries({ [`an error on ${path}`]: errors.join('\n') });
  };
  upstream.play(sayTexts([answer, ' more']));
  for (const [path, body] of asked)
    for (const stream of [true, false]) {
      await send(path, { ...body, stream });
      await send(path, { ...body, stream }, AbortSignal.timeout(1));
    }
  for (const body of refusals) await send('/v1/chat/completions', body);
  await send('/v1/chat/completions', JSON.parse(`{"${prompt.slice(0, 8)}":1}`) as object);
  for (const script of scripts) {
    upstream.play(script);
    await Promise.all(
      asked.flatMap(([path, body]) => [true, false].map((stream) => send(path, { ...body, stream }))),
    );
  }

  const { body: page } = await askAdmin(gateway, 'GET', '/records?limit=200');
  for (const { outcome } of page.data) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  findCanaries({
    records: JSON.stringify(page),
    keys: JSON.stringify((await askAdmin(gateway, 'GET', '/keys')).body),
  });
  // The words themselves are kept, for the operator: the search above would find nothing in records without them.
  expect(JSON.stringify(page)).toContain('is bad: key [key], see [url] or [email], [id], [path]');
  const own = await fetch(`${gateway.url}/v1/key/requests?limit=200`, {
    headers: { authorization: headers.authorization },
  });
  findCanaries({ receipts: await own.clone().text() });
  const attempts = ((await own.json()) as { data: { attempts: { result: string }[] }[] }).data.flatMap(
    (receipt) => receipt.attempts,
  );
  const quoted = attempts.filter((attempt) => JSON.stringify(attempt).includes('is bad'));
  expect(new Set(quoted.map(({ result }) => result))).toEqual(new Set(['refused']));
  expect(JSON.stringify(attempts)).not.toContain('cause');
  expect([...outcomes.keys()]).toEqual(
    expect.arrayContaining(['completed', 'upstream_failed', 'upstream_truncated', 'first_byte_timeout']),
  );
  await gateway.close();
  findCanaries({ traces: collector.bodies.join('\n') });
  expect(collector.spans.length).toBeGreaterThan(100);
  await upstream.close();
  await collector.close();
  vi.unstubAllEnvs();
}, 120_000);

test('the search finds a secret word that does appear', () => {
  for (const canary of [prompt, answer, theirs])
    expect(() => findCanaries({ 'the log': `{"msg":"${canary}"}` })).toThrow('the log contains');
});
