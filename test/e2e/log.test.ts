import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startCollector } from '../support/otlp-collector.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';
import type { ServedHere } from '../support/serve-here.ts';

/** What an upstream says of an error, with its key, the prompt and its addresses. */
const saidOfKeys = JSON.stringify({
  error: {
    message: 'key sk-canary-one of org-canary1 at https://canary.example.com/: "canary-prompt" is no good',
    code: 'sk-canary-two',
  },
});

const body = { model: 'small', messages: [{ role: 'user', content: 'canary-prompt' }] };

let broken: ScriptedUpstream;
let upstream: ScriptedUpstream;
beforeEach(async () => {
  [broken, upstream] = await Promise.all([startUpstream(), startUpstream()]);
  upstream.play(sayTexts(['canary-answer']));
  broken.play((response) => void response.writeHead(401).end(saidOfKeys));
});
afterEach(async () => {
  await Promise.all([broken.close(), upstream.close()]);
});

interface Running {
  readonly server: ServedHere;
  readonly keyId: string;
  readonly secret: string;
  readonly ask: (asked: object, headers?: Record<string, string>) => Promise<string>;
  /** Waits for `count` log lines about requests, and returns them. */
  readonly requestLines: (count: number) => Promise<readonly Record<string, unknown>[]>;
}

/** Runs the service as operators do; its log is the standard output. */
async function serve(variables: Record<string, string> = {}): Promise<Running> {
  const folder = makeTemporaryFolder();
  const config = {
    upstreams: {
      broken: { url: broken.url, apiKey: 'sk-canary-one' },
      spare: { url: upstream.url, apiKey: 'sk-canary-two' },
    },
    models: {
      small: {
        routes: [
          { upstream: 'broken', model: 'tiny' },
          { upstream: 'spare', model: 'large' },
        ],
        price: { input: '1000000', output: '0.5' },
      },
    },
  };
  writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify(config));
  const environment = { ...freePorts, TEXTGATE_ADMIN_TOKEN: 'canary-admin-token', ...variables };
  const server = serveHere(['serve', '--config', 'textgate.yaml'], folder, environment);
  const [, url = '', adminUrl = ''] = await server.printed(/serves (\S+)\/v1 \(admin: (\S+)\)/);
  const made = await fetch(`${adminUrl}/admin/keys`, {
    method: 'POST',
    headers: { authorization: 'Bearer canary-admin-token', 'content-type': 'application/json' },
    body: '{"name":"bob"}',
  });
  const { id: keyId, key: secret } = (await made.json()) as { id: string; key: string };
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return {
    server,
    keyId,
    secret,
    async ask(asked, headers = {}) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(asked),
      });
      await response.text().catch(() => '');
      return response.headers.get('x-request-id') ?? '';
    },
    async requestLines(count) {
      await eventually('the log has its lines', () => lines().length >= count);
      return lines();
    },
  };
}

describe('the log of a running service', () => {
  test('has one line per request with its attempts, tokens, charge and durations', async () => {
    const { ask, requestLines, keyId } = await serve();
    const requestId = await ask({ ...body, stream: true, temperature: 0.7 });
    const lines = await requestLines(1);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      requestId,
      keyId,
      keyName: 'bob',
      protocol: 'chat',
      mode: 'stream',
      model: 'small',
      requestedModel: 'small',
      upstream: 'spare',
      outcome: 'completed',
      status: 200,
      code: null,
      inputTokens: 11,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 7,
      charge: '11.0000035',
      stripped: ['temperature'],
      attempts: [
        {
          upstream: 'broken',
          result: 'auth',
          startedMs: expect.any(Number),
          upstreamError: { status: 401, code: null, message: expect.stringContaining('is no good') },
          cause: expect.stringMatching(
            /^POST http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions: .* \(status 401\)\. .* upstreams\.broken\.apiKey\.$/,
          ) as string,
        },
        { upstream: 'spare', result: 'ok' },
      ],
      queuedMs: expect.any(Number),
      firstTextMs: expect.any(Number),
      totalMs: expect.any(Number),
    });
    expect(lines[0]).not.toHaveProperty('traceId');
  });

  test('contains no prompt, answer, key or secret, for any ending of a request', async () => {
    const { ask, requestLines, secret, server } = await serve();
    await ask(body);
    await ask({ ...body, stream: true });
    upstream.play((response) => void sendStream(response, chatFrames(['canary-answer']).slice(0, 2)).end());
    await ask({ ...body, stream: true });
    upstream.play((response) => void response.writeHead(400).end(saidOfKeys));
    await ask(body);
    await ask({ ...body, model: 'misspelt\u001b[2J' });
    await ask({ ...body, 'canary-field': 'canary-value', user: 'canary-user' });
    await ask(body, { authorization: 'Bearer canary-key' });
    expect((await requestLines(6)).map(({ outcome }) => outcome)).toEqual([
      'completed',
      'completed',
      'upstream_truncated',
      'upstream_failed',
      'refused',
      'refused',
    ]);
    server.signal('SIGTERM');
    const { stdout, stderr } = await server.finished;
    expect(stdout).toMatch(/"count":1,"codes":{"invalid_api_key":1},"msg":"requests without a valid key"/);
    expect(stdout).toContain('"message":"key [key] of [id] at [url]: \\"[text]\\" is no good"');
    expect(stdout).toContain(String.raw`"requestedModel":"misspelt\\u{1b}[2J"`);
    for (const text of ['canary', secret, secret.slice(6)]) expect(stdout + stderr).not.toContain(text);
  }, 120_000);

  test('has the trace id of each request, whose last spans are exported before the process ends', async () => {
    const collector = await startCollector();
    const { ask, requestLines, server } = await serve({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await ask(body);
    const [line] = await requestLines(1);
    server.signal('SIGTERM');
    expect((await server.finished).code).toBe(0);
    const request = collector.spans.find(({ kind }) => kind === 2);
    expect(request?.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(line).toMatchObject({ traceId: request?.traceId });
    await collector.close();
  });

  test('reports an unavailable collector once, while requests are served', async () => {
    const { ask, requestLines, server } = await serve({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '50',
    });
    const told = (): number => server.output().split('exporting traces failed').length - 1;
    await ask(body);
    await eventually('the log has the report', () => told() === 1);
    for (let round = 0; round < 2; round++) await ask(body);
    await requestLines(3);
    server.signal('SIGTERM');
    expect((await server.finished).code).toBe(0);
    expect(told()).toBe(1);
  });
});
