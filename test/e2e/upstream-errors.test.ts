import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const tooLarge = 'max_tokens is too large: 99999. This model supports at most 4096';
const messages = [{ role: 'user' as const, content: 'a question about whales' }];
const endpoints = [
  ['/v1/chat/completions', { model: 'small', messages }],
  ['/v1/responses', { model: 'small', input: 'a question about whales' }],
] as const;
const sse = { 'content-type': 'text/event-stream' };

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
});
afterEach(() => upstream.close());

/** A gateway in front of the upstream, and its log. */
async function start(
  options: TestGatewayOptions = {},
): Promise<TestGateway & { readonly lines: Record<string, unknown>[] }> {
  const lines: Record<string, unknown>[] = [];
  const logDestination = {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  };
  const gateway = await startGateway({ upstreamUrl: upstream.url, logDestination, ...options });
  onTestFinished(() => gateway.close());
  return Object.assign(gateway, { lines });
}

/** Reads a page of the key's own record. */
async function receipt({ url, key }: TestGateway, requestId: string) {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${url}/v1/key/requests/${requestId}`, { headers });
  // eslint-disable-next-line typescript/no-explicit-any -- what a test reads is checked by what it expects
  return (await answer.json()) as any;
}

const answers =
  (status: number, message: string, type = 'a_code') =>
  (response: ServerResponse): void =>
    sendJson(response, status, JSON.stringify({ error: { message, type, code: null } }));

describe('an error status of the upstream', () => {
  test.each([
    [400, tooLarge, 400, 'invalid_value', true],
    [400, "This model's maximum context length is 8192 tokens", 400, 'context_length_exceeded', true],
    [404, 'The model `gpt-9` does not exist', 404, 'model_not_found', true],
    [413, 'The request is over 1 MiB', 400, 'invalid_value', true],
    [422, 'Input should be a valid string', 400, 'invalid_value', true],
    [401, 'This key is disabled', 502, 'upstream_auth', false],
    [403, 'Not in this country', 502, 'upstream_auth', false],
    [400, 'Your credit balance is too low', 502, 'upstream_auth', false],
    [404, 'Not Found', 502, 'upstream_error', false],
    [429, 'Out of requests', 429, 'upstream_rate_limited', false],
    [500, 'CUDA out of memory', 502, 'upstream_error', false],
    [503, 'Loading model', 503, 'overloaded', false],
  ])('%i with %j is a %i %s; the client gets these words: %s4', async (status, said, ours, code, isShown) => {
    const words = { status, code: 'a_code', message: said };
    for (const [path, body] of endpoints)
      for (const stream of [false, true]) {
        const gateway = await start();
        upstream.play(answers(status, said));
        const response = await gateway.post(path, { ...body, stream });
        expect(response.status).toBe(ours);
        const { error } = (await response.json()) as { error: Record<string, unknown> };
        expect(error).toMatchObject({ code, param: null, message: expect.not.stringContaining(said) });
        expect(error['upstream']).toEqual(isShown ? words : undefined);

        const requestId = response.headers.get('x-request-id') ?? '';
        const { body: record } = await askAdmin(gateway, 'GET', `/records/${requestId}`);
        expect(record).toMatchObject({
          request_id: requestId,
          attempts: [{ upstream: 'local', model: 'tiny', cause: expect.stringContaining(String(status)) }],
        });
        expect(record.attempts[0].upstream_error).toEqual(words);
        expect(record.attempts[0].started_ms).toBeGreaterThanOrEqual(0);
        expect((await askAdmin(gateway, 'GET', '/records')).body.data).toEqual([record]);
        expect(gateway.lines.find(({ msg }) => msg === 'request')).toMatchObject({
          code,
          cause: expect.stringContaining(String(status)),
          upstreamError: words,
          keyName: 'test',
          requestedModel: 'small',
        });
        const [attempt] = (await receipt(gateway, requestId)).attempts;
        expect(attempt).not.toHaveProperty('cause');
        expect(attempt.upstream_error).toEqual(isShown && ours === 400 ? words : undefined);
      }
  });

  test('without words leaves the status', async () => {
    const gateway = await start();
    upstream.play((response) => void response.writeHead(400).end());
    const { error } = (await (await gateway.post(...endpoints[0])).json()) as { error: object };
    expect(error).toMatchObject({ upstream: { status: 400, code: null, message: null } });
  });

  test('whose body repeats a request that is longer than what is read of it keeps its message', async () => {
    const gateway = await start();
    const content = 'a question about whales '.repeat(4_000);
    const fault = { type: 'string_too_long', loc: ['body'], msg: 'Text should be shorter', input: content };
    upstream.play((response) => sendJson(response, 422, JSON.stringify({ detail: [fault] })));
    const body = { model: 'small', messages: [{ role: 'user', content }] };
    const { error } = (await (await gateway.post('/v1/chat/completions', body)).json()) as {
      error: Record<string, unknown>;
    };
    expect(error['upstream']).toEqual({ status: 422, code: null, message: 'Text should be shorter' });
  });

  test('that is a web page leaves its title', async () => {
    const gateway = await start();
    const page =
      '<html><head><title>api.example.com | 502: Bad gateway</title></head><body>Ray 1</body></html>';
    upstream.play((response) => void response.writeHead(502, { 'content-type': 'text/html' }).end(page));
    const response = await gateway.post(...endpoints[0]);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_error' } });
    const { body: record } = await askAdmin(
      gateway,
      'GET',
      `/records/${response.headers.get('x-request-id')}`,
    );
    expect(record.attempts[0].upstream_error).toEqual({
      status: 502,
      code: null,
      message: '[host] | 502: Bad gateway',
    });
  });

  test('has its cause in the record where there was no answer at all', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => closed.once('listening', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    for (const [url, cause] of [
      [`http://127.0.0.1:${port}/v1`, /refused/i],
      ['http://nosuch.invalid/v1', /ENOTFOUND|EAI_AGAIN|name|DNS/i],
      [upstream.url.replace('http', 'https'), /TLS|SSL|EPROTO/i],
    ] as const) {
      const gateway = await start({ upstreamUrl: url });
      const response = await gateway.post(...endpoints[0]);
      const { error } = (await response.json()) as { error: object };
      expect(error).toMatchObject({ code: 'upstream_unavailable' });
      expect(JSON.stringify(error)).not.toMatch(/127\.0\.0\.1|nosuch|upstream":/);
      const { body: record } = await askAdmin(
        gateway,
        'GET',
        `/records/${response.headers.get('x-request-id')}`,
      );
      expect(record.attempts[0]).toMatchObject({
        cause: expect.stringMatching(cause) as string,
        upstream_error: null,
      });
    }
  });

  test('does not hold up another route by a body that never ends', async () => {
    const clock = createFakeClock();
    const spare = await startUpstream();
    onTestFinished(() => spare.close());
    spare.play(sayTexts(['fine']));
    let asked = 0;
    upstream.play((response) => {
      asked++;
      response.writeHead(500, { 'content-length': '1000' }).write('{');
    });
    const gateway = await start({
      clock,
      upstreams: { spare: { url: spare.url } },
      routes: [
        { upstream: 'local', model: 'tiny' },
        { upstream: 'spare', model: 'tiny' },
      ],
    });
    const answer = gateway.post(...endpoints[0]);
    await eventually('the first one is asked', () => asked === 1);
    await gateway.recorded();
    await eventually('the second one answers', () => {
      clock.advance(250);
      return spare.seen.length === 1;
    });
    expect((await answer).status).toBe(200);
  });
});

const reported = `data: ${JSON.stringify({ error: { message: tooLarge, code: 400, type: 'bad_request' } })}\n\n`;

describe('an error inside an answer', () => {
  const words = { status: 400, code: 'bad_request', message: tooLarge };

  test.each(endpoints)('is told to the client of %s', async (path, body) => {
    const gateway = await start();
    upstream.play((response) => void response.writeHead(200, sse).end(reported));
    for (const stream of [false, true]) {
      const response = await gateway.post(path, { ...body, stream });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_value', upstream: words } });
    }
  });

  test.each(endpoints)('is told inside the stream of %s after a comment', async (path, body) => {
    const clock = createFakeClock();
    const gateway = await start({ clock });
    let call: ServerResponse | undefined;
    upstream.play((response) => {
      sendStream(response, []);
      response.flushHeaders();
      call = response;
    });
    const answer = readLive(gateway.post(path, { ...body, stream: true }));
    await eventually('the upstream is asked', () => call !== undefined);
    await gateway.recorded();
    clock.advance(15_000);
    await eventually('a comment comes', () => answer.text !== '');
    call?.end(reported);
    await answer.ended;
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(`"upstream":${JSON.stringify(words)}`);
  });
});

describe('the openai client', () => {
  test('gets them from a stream that has begun with a comment', async () => {
    const clock = createFakeClock();
    const gateway = await start({ clock });
    const calls: ServerResponse[] = [];
    upstream.play((response) => {
      sendStream(response, []).flushHeaders();
      calls.push(response);
    });
    const openai = gateway.client;
    const asked = { model: 'small', stream: true as const };
    for (const [number, read] of [
      async () => Array.fromAsync<unknown>(await openai.chat.completions.create({ ...asked, messages })),
      async () => Array.fromAsync<unknown>(await openai.responses.create({ ...asked, input: 'a question' })),
    ].entries()) {
      const failure = read().catch((error: unknown) => error);
      await eventually('the upstream is asked', () => calls.length > number);
      await gateway.recorded();
      clock.advance(15_000);
      calls[number]?.end(reported);
      expect(JSON.stringify(await failure)).toContain(tooLarge);
    }
  });

  test('finds the words of the upstream in its errors', async () => {
    const gateway = await start();
    upstream.play(answers(400, tooLarge));
    const upstreamError = { status: 400, code: 'a_code', message: tooLarge };
    const asked = { model: 'small', messages };
    for (const ask of [
      () => gateway.client.chat.completions.create(asked),
      () => gateway.client.chat.completions.create({ ...asked, stream: true }),
      () => gateway.client.responses.create({ model: 'small', input: 'a question' }),
    ]) {
      const failure: unknown = await ask().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(OpenAI.BadRequestError);
      expect(failure).toMatchObject({
        status: 400,
        code: 'invalid_value',
        error: { upstream: upstreamError },
      });
    }
  });
});

describe('a model that one upstream does not have', () => {
  test('is asked of the next one, and is a 404 if none has it', async () => {
    const spare = await startUpstream();
    onTestFinished(() => spare.close());
    const gateway = await start({
      upstreams: { spare: { url: spare.url } },
      routes: [
        { upstream: 'local', model: 'tiny' },
        { upstream: 'spare', model: 'large' },
      ],
    });
    upstream.play(answers(404, 'The model `tiny` does not exist'));
    spare.play(sayTexts(['fine']));
    for (let round = 0; round < 8; round++) expect((await gateway.post(...endpoints[0])).status).toBe(200);
    expect(upstream.seen).toHaveLength(8);
    spare.play(answers(404, 'The model `large` does not exist'));
    const response = await gateway.post(...endpoints[0]);
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([404, null]);
    expect(await response.json()).toMatchObject({
      error: {
        code: 'model_not_found',
        upstream: { status: 404, message: 'The model `large` does not exist' },
      },
    });
  });
});

describe('a record', () => {
  test('of an unknown request is a 404, and has no other method', async () => {
    const gateway = await start();
    const missing = await askAdmin(gateway, 'GET', '/records/req_none');
    expect([missing.status, missing.body.error.code]).toEqual([404, 'request_not_found']);
    expect((await askAdmin(gateway, 'POST', '/records/req_none', {})).status).toBe(405);
    const { status } = await fetch(`${gateway.adminUrl}/admin/records/req_none`);
    expect(status).toBe(401);
  });
});

describe('receipts', () => {
  const attempts = [{ upstream: 'local', model: 'tiny', result: 'ok' }];

  test.each([
    ['shown', { upstream: 'local', attempts }],
    ['hidden', { upstream: null, attempts: [] }],
  ] as const)('have upstreams and attempts as they are configured: %s', async (upstreams, facts) => {
    const gateway = await start({ receipts: { upstreams } });
    upstream.play(sayTexts(['fine']));
    const response = await gateway.post(...endpoints[0]);
    const requestId = response.headers.get('x-request-id') ?? '';
    const shown = { request_id: requestId, model: 'small', outcome: 'completed', ...facts };
    expect(await receipt(gateway, requestId)).toMatchObject(shown);
    expect(await receipt(gateway, '')).toMatchObject({ data: [shown] });
    const { body: record } = await askAdmin(gateway, 'GET', `/records/${requestId}`);
    expect(record).toMatchObject({ upstream: 'local', attempts });
  });
});

describe('the log line of a refused model', () => {
  test.each([
    ['smal', 'smal'],
    ['a\nb\u001b[2J', String.raw`a\nb\u{1b}[2J`],
    ['small-'.repeat(90), 'small-'.repeat(90).slice(0, 128)],
    ['sk-tg-abcdefghijkl-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', '[key]'],
    ['0123456789abcdef0123456789abcdef', '[key]'],
  ])('names it: %j', async (model, shown) => {
    const gateway = await start();
    expect((await gateway.post('/v1/chat/completions', { model, messages })).status).toBe(404);
    expect(gateway.lines).toMatchObject([
      { msg: 'request', status: 404, model: null, requestedModel: shown, keyName: 'test' },
    ]);
  });
});
