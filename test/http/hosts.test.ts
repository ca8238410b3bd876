import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { RequestHandler } from 'express';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let gateway: TestGateway;
let asked: { authorization: string; 'content-type': string };

beforeAll(async () => {
  gateway = await startGateway();
  asked = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
});

afterAll(() => gateway.close());

/** Serves a handler of Node's own requests, such as an Express app, and returns its address. */
async function host(handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const chat = JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'hello' }] });

/** The status and the error code of an answer, or its object type. */
async function outcomeOf(url: string, init: RequestInit = {}): Promise<readonly [number, unknown]> {
  const response = await fetch(url, { headers: asked, ...init });
  const { error, object } = (await response.json()) as { error?: { code: string }; object?: string };
  return [response.status, error?.code ?? object];
}

describe('gateway.router', () => {
  test('refuses its own paths after gateway.close, leaves other paths to the app, and logs no error', async () => {
    let log = '';
    const own = createGateway(
      {
        upstreams: { demo: { url: 'demo:' } },
        models: { from: 'demo' },
        storage: { url: 'sqlite::memory:' },
      },
      { logLevel: 'info', logDestination: { write: (line) => void (log += line) } },
    );
    const app = express().use(own.router, (_request, response) => void response.status(418).json({}));
    const [mounted, bare] = [await host(app), await host(own.router)];
    const { key } = await own.keys.create({ name: 'a key of before' });
    await own.close();
    const headers = { ...asked, authorization: `Bearer ${key}` };
    for (const url of [mounted, bare])
      for (const [path, init] of [
        ['/v1/models', { headers }],
        ['/v1/chat/completions', { headers, method: 'POST', body: chat }],
      ] as const)
        expect(await outcomeOf(url + path, init)).toEqual([503, 'draining']);
    expect(await outcomeOf(`${mounted}/elsewhere`)).toEqual([418, undefined]);
    expect(log).not.toMatch(/"level":(?:40|50|60|"(?:warn|error|fatal)")/i);
  });

  test('serves every route under node:http without an Express app', async () => {
    const url = await host(gateway.gateway.router);
    const post = { method: 'POST', body: chat };
    expect(await outcomeOf(`${url}/v1/chat/completions`, post)).toEqual([200, 'chat.completion']);
    const responses = { method: 'POST', body: JSON.stringify({ model: 'small', input: 'hello' }) };
    expect(await outcomeOf(`${url}/v1/responses`, responses)).toEqual([200, 'response']);
    expect(await outcomeOf(`${url}/v1/models`)).toEqual([200, 'list']);
    expect(await outcomeOf(`${url}/v1/key/requests?limit=1`)).toEqual([200, 'list']);
    expect(await outcomeOf(`${url}/v1/key/requests?limit=a`)).toEqual([400, 'invalid_value']);
    expect(await outcomeOf(`${url}/v1/models`, { method: 'DELETE' })).toEqual([405, 'method_not_allowed']);
    expect(await outcomeOf(`${url}/v1/models/%ff`)).toEqual([404, 'unknown_url']);
    expect(await outcomeOf(`${url}/anything`)).toEqual([404, 'unknown_url']);
  });

  test('leaves the paths of other routes to them, with request and response unchanged', async () => {
    const app = express();
    app.use((_request, response, next) => {
      response.locals['id'] = 'of the app';
      next();
    });
    app.use('/llm', gateway.gateway.router, gateway.gateway.admin);
    app.use((request, response) => {
      const id: unknown = response.locals['id'];
      response.json({ url: request.url, base: request.baseUrl, id, names: response.getHeaderNames() });
    });
    const url = await host(app);
    expect(await outcomeOf(`${url}/llm/v1/models`)).toEqual([200, 'list']);
    const left = await fetch(`${url}/llm/other?a=1`, { headers: asked });
    expect(await left.json()).toEqual({
      url: '/llm/other?a=1',
      base: '',
      id: 'of the app',
      names: ['x-powered-by'],
    });
  });

  test('names the right path to a client that left out the /v1 below a mount, and to no one else', async () => {
    const app = express();
    app.use('/llm', gateway.gateway.router);
    app.use((_request, response) => void response.status(418).end());
    const url = await host(app);
    const refused = await fetch(`${url}/llm/chat/completions`, {
      method: 'POST',
      headers: asked,
      body: chat,
    });
    expect([refused.status, await refused.text()]).toEqual([
      404,
      expect.stringContaining('Did you mean /llm/v1/chat/completions?'),
    ]);
    expect((await fetch(`${url}/llm/models`)).status).toBe(418);
    expect((await fetch(`${url}/llm/elsewhere`, { headers: asked })).status).toBe(418);
    expect((await fetch(`${url}/llm/v1/elsewhere`)).status).toBe(404);
  });

  test('names the right path to a client with a declared key in a form of its own, too', async () => {
    const app = express();
    const key = 'sk-Yq3vT9LmW0zKc7Rb1';
    const declaring = createGateway(
      {
        storage: { url: 'sqlite::memory:' },
        upstreams: { demo: { url: 'demo:' } },
        models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
        keys: { bob: { key } },
      },
      { logLevel: 'silent' },
    );
    onTestFinished(() => declaring.close());
    app.use('/llm', declaring.router);
    app.use((_request, response) => void response.status(418).end());
    const url = await host(app);
    const ask = (secret: string): Promise<Response> =>
      fetch(`${url}/llm/models`, { headers: { authorization: `Bearer ${secret}` } });
    const refused = await ask(key);
    expect([refused.status, await refused.text()]).toEqual([
      404,
      expect.stringContaining('Did you mean /llm/v1/models?'),
    ]);
    expect((await ask(`${key}2`)).status).toBe(418);
  });

  test.each([
    ['express.json', express.json()],
    ['express.text', express.text({ type: () => true })],
    ['express.raw', express.raw({ type: () => true })],
  ])('takes a body that %s has read', async (_name, parser) => {
    const url = await host(express().use(parser, gateway.gateway.router));
    const answer = await outcomeOf(`${url}/v1/chat/completions`, { method: 'POST', body: chat });
    expect(answer).toEqual([200, 'chat.completion']);
  });
});

describe('a passthrough path behind the parsers of an app', () => {
  let upstream: ScriptedUpstream;
  let passing: TestGateway;

  beforeAll(async () => {
    upstream = await startUpstream();
    passing = await startGateway({
      upstreamUrl: upstream.url,
      passthrough: [{ path: '/pass', upstream: 'local', price: { request: '1.00' } }],
    });
    upstream.play((response, request) => void response.end(request.body));
  });

  afterAll(async () => {
    await passing.close();
    await upstream.close();
  });

  /** Posts through a parser; returns the status, and the body that the upstream got. */
  async function passThrough(parser: RequestHandler, type: string, body: string): Promise<unknown> {
    const url = await host(express().use(parser, passing.gateway.router));
    const headers = { authorization: `Bearer ${passing.key}`, 'content-type': type };
    upstream.seen.length = 0;
    const answer = await fetch(`${url}/pass`, { method: 'POST', headers, body });
    await answer.text();
    return [answer.status, ...upstream.seen.map((seen) => seen.body)];
  }

  const json = 'application/json';
  const form = 'application/x-www-form-urlencoded';
  test.each([
    ['express.json', express.json(), json, '{"a":1}'],
    ['express.json', express.json({ strict: false }), json, '0'],
    ['express.text', express.text({ type: () => true }), json, '{ "a": 1 }'],
    ['express.raw', express.raw({ type: () => true }), json, '{ "a": 1 }'],
    ['express.raw', express.raw({ type: () => true }), 'image/png', 'pixels'],
    ['express.urlencoded', express.urlencoded({ extended: false }), form, 'a=1&b=2&b=3'],
    ['no parser', (_request, _response, next) => next(), 'image/png', 'pixels'],
  ] satisfies [string, RequestHandler, string, string][])(
    'sends the body that %s has read to the upstream (%#)',
    async (_name, parser, type, body) => {
      expect(await passThrough(parser, type, body)).toEqual([200, body]);
    },
  );

  const drain: RequestHandler = (request, _response, next) => void request.resume().once('end', next);
  const parseAnything: RequestHandler = (request, response, next) =>
    drain(request, response, () => {
      request.body = { a: '1' };
      next();
    });
  test.each([
    ['a middleware consumed', drain, json, '{"a":1}'],
    ['a parser of another format replaced', parseAnything, 'multipart/form-data; boundary=b', '--b--'],
    ['a parser gave nested fields', express.urlencoded({ extended: true }), form, 'a[b]=1'],
  ] satisfies [string, RequestHandler, string, string][])(
    'refuses a body that %s, without a charge',
    async (_name, parser, type, body) => {
      const before = await passing.gateway.records.list();
      expect(await passThrough(parser, type, body)).toEqual([500]);
      expect(await passing.gateway.records.list()).toEqual(before);
    },
  );
});

describe('gateway.admin', () => {
  test('serves its routes under node:http without an Express app', async () => {
    const url = await host(gateway.gateway.admin);
    const headers = { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' };
    expect((await fetch(`${url}/metrics`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(await outcomeOf(`${url}/admin/keys`)).toEqual([401, 'invalid_api_key']);
    expect(await outcomeOf(`${url}/admin/keys?limit=1`, { headers })).toEqual([200, 'list']);
    expect(await outcomeOf(`${url}/admin/records?limit=0`, { headers })).toEqual([400, 'invalid_value']);
    const csv = await fetch(`${url}/admin/records`, { headers: { ...headers, accept: 'text/csv' } });
    expect(csv.headers.get('content-type')).toContain('text/csv');
    expect(await outcomeOf(`${url}/other`)).toEqual([404, 'unknown_url']);
  });
});
