import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import OpenAI from 'openai';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { browserFetch } from '../support/browser-fetch.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const page = 'https://app.example.com';
const chat = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user' as const, content: 'x' }] };

/** A gateway that pages of some origins may call. */
async function start(corsOrigins: string[] = [page], options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, server: { corsOrigins } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The headers of an answer by which browsers decide. */
function decisive({ headers }: Response): Readonly<Record<string, string | null>> {
  return {
    origin: headers.get('access-control-allow-origin'),
    vary: headers.get('vary'),
    credentials: headers.get('access-control-allow-credentials'),
  };
}

const allowed = { origin: page, vary: 'Origin', credentials: null };
const notAllowed = { origin: null, vary: 'Origin', credentials: null };

const preflight = (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  fetch(url, {
    method: 'OPTIONS',
    headers: { origin: page, 'access-control-request-method': 'POST', ...headers },
  });

describe('the official client in a web page', () => {
  /** A client in what it takes for a browser. */
  function openClient({ url, key }: TestGateway, origin = page) {
    vi.stubGlobal('window', { document: {} });
    onTestFinished(() => void vi.unstubAllGlobals());
    const { fetch: fetchAsPage, asked } = browserFetch(origin);
    const settings = { baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch: fetchAsPage };
    expect(() => new OpenAI(settings)).toThrow('dangerouslyAllowBrowser');
    return { asked, client: new OpenAI({ ...settings, dangerouslyAllowBrowser: true }) };
  }

  test('gets whole and streamed answers in both protocols, with their request ids', async () => {
    const { client, asked } = openClient(await start());
    const whole = await client.chat.completions.create(body);
    expect(whole.choices[0]?.finish_reason).toBe('stop');
    expect(whole._request_id).toMatch(/^req_/);
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true }))
      text += chunk.choices[0]?.delta.content ?? '';
    expect(text).not.toBe('');
    const response = await client.responses.create({ model: 'small', input: 'x' });
    expect(response.status).toBe('completed');
    const events = await Array.fromAsync(
      await client.responses.create({ model: 'small', input: 'x', stream: true }),
    );
    expect(events.at(-1)?.type).toBe('response.completed');
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['small']);
    const names = new Set(asked.flatMap((one) => one.asked));
    expect([...names].filter((name) => !name.startsWith('x-stainless-')).toSorted()).toEqual([
      'authorization',
      'content-type',
    ]);
    expect([...names].filter((name) => name.startsWith('x-stainless-')).length).toBeGreaterThan(5);
    expect(asked.map(({ status }) => status)).toEqual(Array.from({ length: asked.length }, () => 204));
  });

  test('reads errors with their code and when to retry', async () => {
    const { client } = openClient(await start([page], { limits: { requestsPerMinute: 1 } }));
    await client.chat.completions.create(body);
    const limited = await client.chat.completions.create(body).catch((error: unknown) => error);
    expect(limited).toMatchObject({ status: 429, code: 'rate_limit_exceeded' });
    expect((limited as InstanceType<typeof OpenAI.APIError>).headers?.get('retry-after')).toMatch(/^\d+$/);
  });

  test('is kept out by the browser on pages of other origins', async () => {
    const { client } = openClient(await start(), 'https://other.example.com');
    const failed: unknown = await client.models.list().catch((error: unknown) => error);
    expect(String((failed as Error).cause)).toContain('blocked: the answer is for null');
  });
});

describe('an answer to a page of a listed origin', () => {
  test('says so, whatever it is: a text, a stream, an error, a 401, a 404, and what is no route’s', async () => {
    const gateway = await start();
    const headers = { origin: page };
    const answers = [
      await gateway.post(chat, body, { headers }),
      await gateway.post(chat, { ...body, stream: true }, { headers }),
      await gateway.post(chat, {}, { headers }),
      await gateway.post(chat, body, { headers: { ...headers, authorization: 'Bearer wrong' } }),
      await gateway.post('/v1/unknown', {}, { headers }),
      await gateway.post('/unknown', {}, { headers }),
      await fetch(`${gateway.url}/v1/key`, {
        headers: { ...headers, authorization: `Bearer ${gateway.key}` },
      }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 401, 404, 404, 200]);
    for (const answer of answers) {
      expect(decisive(answer)).toEqual(allowed);
      await answer.text();
    }
    const exposed = answers[0]?.headers.get('access-control-expose-headers')?.split(', ') ?? [];
    const own = [...(answers[0]?.headers.keys() ?? [])].filter((name) =>
      /^x-(textgate|ratelimit|request)/.test(name),
    );
    expect(own.length).toBeGreaterThan(4);
    expect(own.filter((name) => !exposed.includes(name))).toEqual([]);
  });

  test('says so where the request can’t be read to its end, or expects what is not supported', async () => {
    const gateway = await start();
    const [head = ''] = rawPost(chat, gateway.key, body).split('\r\nContent-Length');
    const requests = [
      `${head}\r\nOrigin: ${page}\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n`,
      `${head}\r\nOrigin: ${page}\r\nExpect: more\r\nContent-Length: 2\r\n\r\n{}`,
    ];
    for (const request of requests) {
      const client = openRaw(gateway.url);
      client.socket.write(request);
      await eventually('it is refused', () => /HTTP\/1\.1 4\d\d /.test(client.text()));
      expect(client.text()).toContain(`\r\naccess-control-allow-origin: ${page}\r\n`);
    }
  });

  test('to pages of other origins, and to clients that are none, says nothing of origins', async () => {
    const gateway = await start();
    for (const headers of [{ origin: 'https://other.example.com' }, { origin: 'null' }, {}])
      expect(decisive(await gateway.post(chat, body, { headers }))).toEqual(notAllowed);
  });

  test('has one list of headers where every origin is listed', async () => {
    const gateway = await start(['*']);
    for (const headers of [{ origin: 'https://other.example.com' }, { origin: 'null' }, {}])
      expect(decisive(await gateway.post(chat, body, { headers }))).toEqual({
        origin: '*',
        vary: null,
        credentials: null,
      });
    expect((await preflight(gateway.url + chat, { origin: 'http://x.example' })).status).toBe(204);
  });
});

describe('a browser’s question before a request', () => {
  test('is answered without a key, on every path, with the headers that a page may send', async () => {
    const gateway = await start();
    const asked =
      'Authorization, content-type, Idempotency-Key, x-stainless-os, X-Textgate-Tag, cookie, x-api-key, x-é';
    for (const path of [chat, '/v1/responses', '/v1/models/a', '/v1/key', '/nowhere']) {
      const answer = await preflight(gateway.url + path, {
        'access-control-request-headers': Buffer.from(asked).toString('latin1'),
      });
      expect(answer.status).toBe(204);
      expect(decisive(answer)).toEqual(allowed);
      expect(answer.headers.get('access-control-allow-headers')).toBe(
        'authorization, content-type, idempotency-key, x-stainless-os, x-textgate-tag',
      );
      expect(answer.headers.get('access-control-allow-methods')).toContain('POST');
      expect(answer.headers.get('access-control-max-age')).toBe('7200');
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
      expect(answer.headers.has('content-length')).toBe(false);
    }
  });

  test('is answered here on passthrough paths, too, whose other OPTIONS go on to the upstream', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.play((response) => void response.writeHead(200, { allow: 'upstream' }).end());
    const gateway = await start([page], {
      upstreamUrl: upstream.url,
      passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
    });
    expect((await preflight(`${gateway.url}/tokenize`)).status).toBe(204);
    expect(upstream.seen).toEqual([]);
    const headers = { authorization: `Bearer ${gateway.key}`, origin: page };
    const passed = await fetch(`${gateway.url}/tokenize`, { method: 'OPTIONS', headers });
    expect(passed.status).toBe(200);
    expect(decisive(passed)).toEqual(allowed);
    expect(upstream.seen).toHaveLength(1);
  });

  test.each([
    ['for another origin', [page], { origin: 'https://other.example.com' }],
    ['without origins in the config', [], {}],
  ])('is the 405 of any other OPTIONS %s', async (_when, origins, headers) => {
    const gateway = await start(origins);
    const answer = await preflight(gateway.url + chat, headers);
    expect(answer.status).toBe(405);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    expect(answer.headers.get('access-control-allow-headers')).toBeNull();
  });
});

test('without origins in the config, no answer speaks of origins', async () => {
  const gateway = await start([]);
  const answer = await gateway.post(chat, body, { headers: { origin: page } });
  expect(decisive(answer)).toEqual({ origin: null, vary: null, credentials: null });
});

test('the operators’ listener answers no page, whatever origins are listed', async () => {
  for (const origins of [[page], ['*']]) {
    const gateway = await start(origins);
    for (const path of ['/admin/keys', '/metrics', '/healthz', '/nowhere']) {
      const answer = await preflight(gateway.adminUrl + path);
      expect(answer.status).toBe(401);
      expect(decisive(answer)).toEqual({ origin: null, vary: null, credentials: null });
    }
  }
});

test('origins change with a reload', async () => {
  const config = {
    server: { port: 0, corsOrigins: [page] },
    admin: { port: 0 },
    storage: { url: 'sqlite::memory:' },
    upstreams: { demo: { url: 'demo:' } },
    models: { small: { routes: [{ upstream: 'demo', model: 'm' }], free: true as const } },
  };
  const gateway = createGateway(config, { logLevel: 'silent' });
  onTestFinished(() => gateway.close());
  const { url } = await gateway.listen();
  expect((await preflight(url + chat)).status).toBe(204);
  expect(gateway.reload({ ...config, server: { port: 0 } })).toEqual([]);
  expect((await preflight(url + chat)).status).toBe(405);
});

test('in an app, the gateway’s own paths say so alone, beside what the app says', async () => {
  const gateway = await start();
  const app = express()
    .use((_request, response, next) => {
      response.setHeader('vary', 'Accept-Encoding');
      next();
    })
    .use(gateway.gateway.router)
    .get('/app', (_request, response) => void response.send('x'));
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await preflight(url + chat)).status).toBe(204);
  const headers = { authorization: `Bearer ${gateway.key}`, origin: page };
  const models = await fetch(`${url}/v1/models`, { headers });
  expect(decisive(models)).toEqual({ ...allowed, vary: 'Accept-Encoding, Origin' });
  expect(decisive(await fetch(`${url}/app`, { headers }))).toEqual({
    origin: null,
    vary: 'Accept-Encoding',
    credentials: null,
  });
  const fetched = await gateway.gateway.fetch(new Request('http://x/v1/models', { headers }));
  expect(decisive(fetched)).toEqual(allowed);
  const asked = await gateway.gateway.fetch(
    new Request('http://x/v1/models', {
      method: 'OPTIONS',
      headers: { origin: page, 'access-control-request-method': 'GET' },
    }),
  );
  expect(asked.status).toBe(204);
});
