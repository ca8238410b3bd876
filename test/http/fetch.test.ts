import { setImmediate } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import {
  chatFrames,
  cut,
  sayTexts,
  sendJson,
  sendStream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    server: { maxBody: '100KiB' },
    passthrough: [
      { path: '/tokenize', upstream: 'local' },
      { path: '/rerank', upstream: 'local', price: { request: '1.00' } },
    ],
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const origin = 'http://textgate.test';
const body = { model: 'small', messages: [{ role: 'user', content: 'hello' }] };

/** The options of a `Request`, with headers as an object. */
interface Asked extends Omit<RequestInit, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly duplex?: 'half';
}

function ask(path: string, init: Asked = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
  return gateway.gateway.fetch(
    new Request(origin + path, { ...init, headers: { ...headers, ...init.headers } }),
  );
}

function askStream(init: Asked = {}): Promise<Response> {
  return ask('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({ ...body, stream: true }),
    ...init,
  });
}

const slots = async (): Promise<number> =>
  (await gateway.gateway.keys.list()).data.reduce((sum, key) => sum + key.in_flight, 0);

/** Waits until the only request is settled with this outcome, and no slot is in use. */
function settledAs(outcome: string): Promise<void> {
  return eventually(`settled as ${outcome}`, async () => {
    const { data } = await gateway.gateway.records.list();
    return data.length === 1 && data[0]?.outcome === outcome && (await slots()) === 0;
  });
}

/** A body that arrives in parts of 10 kB, and counts how many were taken. */
function endlessBody(): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly taken: () => number;
  readonly cancelled: () => boolean;
} {
  let taken = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        taken++;
        controller.enqueue(new Uint8Array(10_000).fill(32));
      },
      cancel: () => void (cancelled = true),
    },
    { highWaterMark: 0 },
  );
  return { stream, taken: () => taken, cancelled: () => cancelled };
}

describe('gateway.fetch', () => {
  test('says after gateway.close that the gateway is closed', async () => {
    await gateway.gateway.close();
    const answer = await askStream();
    expect(answer.status).toBe(503);
    expect(answer.headers.get('x-request-id')).toMatch(/./);
    expect(await answer.json()).toMatchObject({
      error: { code: 'draining', message: 'This gateway is closed. Try again: another instance may answer.' },
    });
  });

  test('answers the official client, whole and streamed', async () => {
    upstream.play(sayTexts(['one ', 'two']));
    const client = new OpenAI({
      baseURL: `${origin}/v1`,
      apiKey: gateway.key,
      fetch: (url, init) => gateway.gateway.fetch(new Request(url, init)),
    });
    const messages = [{ role: 'user' as const, content: 'hello' }];
    const whole = await client.chat.completions.create({ model: 'small', messages });
    expect(whole.choices[0]?.message.content).toBe('one two');
    let text = '';
    for await (const chunk of await client.chat.completions.create({
      model: 'small',
      messages,
      stream: true,
    }))
      text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('one two');
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['small']);
  });

  test('has the same headers, statuses and bodies as the listener', async () => {
    for (const path of [
      '/v1/models',
      '/v1/models/other',
      '/v1/key',
      '/v1/key/requests?limit=0',
      '/models',
      '/other',
    ]) {
      const here = await ask(path);
      const there = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${gateway.key}` } });
      expect([here.status, await here.text()]).toEqual([there.status, await there.text()]);
      const names = (headers: Headers): string[] =>
        [...headers.keys()].filter((name) => !['connection', 'date', 'keep-alive'].includes(name));
      expect(names(here.headers)).toEqual(names(there.headers));
    }
    const refused = await gateway.gateway.fetch(new Request(`${origin}/v1/models`));
    expect(refused.status).toBe(401);
    expect(refused.headers.get('x-request-id')).toMatch(/^req_/);
  });

  test('answers HEAD without a body, and a wrong method with 405', async () => {
    const head = await ask('/v1/models', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, null]);
    expect((await ask('/v1/models', { method: 'DELETE' })).status).toBe(405);
  });

  test('refuses a body that is larger than the limit without reading all of it', async () => {
    const { stream, taken, cancelled } = endlessBody();
    const answer = await ask('/v1/chat/completions', { method: 'POST', body: stream, duplex: 'half' });
    expect([answer.status, await answer.json()]).toMatchObject([
      413,
      { error: { code: 'request_too_large' } },
    ]);
    expect(taken()).toBeLessThan(20);
    await eventually('the body is cancelled', cancelled);
  });

  test('does not read a body at all without a valid key, or when its length is too large', async () => {
    const anonymous = endlessBody();
    const refused = await ask('/v1/chat/completions', {
      method: 'POST',
      body: anonymous.stream,
      duplex: 'half',
      headers: { authorization: 'Bearer wrong' },
    });
    expect(refused.status).toBe(401);
    const long = endlessBody();
    const tooLarge = await ask('/v1/chat/completions', {
      method: 'POST',
      body: long.stream,
      duplex: 'half',
      headers: { 'content-length': '200000' },
    });
    expect(tooLarge.status).toBe(413);
    expect([anonymous.taken(), long.taken()]).toEqual([0, 0]);
  });

  test('says so when the body was read before it, or breaks off', async () => {
    const request = new Request(`${origin}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    });
    await request.text();
    const consumed = await gateway.gateway.fetch(request);
    expect([consumed.status, await consumed.text()]).toEqual([
      500,
      expect.stringContaining('consumed the request body'),
    ]);
    const broken = new ReadableStream({ start: (controller) => controller.error(new Error('gone')) });
    const answer = await ask('/v1/chat/completions', { method: 'POST', body: broken, duplex: 'half' });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { code: 'invalid_json', message: 'The request body broke off before its end.' },
    });
    expect(await slots()).toBe(0);
  });

  test.each(['fin', 'rst'] as const)(
    'ends the body of a cut-off answer with an error, behind the frame that explains it (%s)',
    async (how) => {
      const frames = chatFrames(['some text']);
      upstream.play((response) => {
        sendStream(response, frames.slice(0, 2));
        setTimeout(() => cut(response, how), 50);
      });
      const answer = readLive(askStream());
      await answer.ended;
      expect(answer).toMatchObject({ status: 200, broken: true });
      expect(answer.text).toContain('some text');
      expect(answer.text).toContain('"code":"upstream_truncated"');
      expect(answer.text).not.toContain('[DONE]');
      await settledAs('upstream_truncated');
    },
  );

  test('keeps the text and the frame that explains its break-off for a reader that comes late', async () => {
    upstream.play((response) => {
      sendStream(response, chatFrames(['some text']).slice(0, 2));
      setTimeout(() => cut(response, 'fin'), 50);
    });
    const answer = askStream();
    await answer;
    const { records } = gateway.gateway;
    await eventually('the request is settled', async () =>
      (await records.list()).data.some(({ outcome }) => outcome === 'upstream_truncated'),
    );
    // The end follows the settlement; an end that discarded the text would do so now.
    for (let turn = 0; turn < 100; turn++) await setImmediate();
    const late = readLive(answer);
    await late.ended;
    expect(late).toMatchObject({ broken: true, text: expect.stringContaining('some text') as string });
    expect(late.text).toContain('"code":"upstream_truncated"');
  });

  test.each(['the signal', 'the body'] as const)(
    'stops the upstream and frees the slot when the client leaves by %s',
    async (by) => {
      upstream.play((response) => void sendStream(response, chatFrames(['first ']).slice(0, 2)));
      const leaving = new AbortController();
      const answer = await askStream({ signal: leaving.signal });
      const reader = answer.body?.getReader();
      await reader?.read();
      expect(await slots()).toBe(1);
      if (by === 'the signal') leaving.abort();
      else await reader?.cancel();
      const rest = await reader?.read().catch((error: unknown) => error);
      expect(rest).toMatchObject(by === 'the signal' ? { name: 'AbortError' } : { done: true });
      await eventually('the upstream is stopped', () => upstream.aborted === 1);
      await settledAs('client_closed');
    },
  );

  test('rejects with the reason of a signal that is raised before the answer begins', async () => {
    upstream.play(() => {});
    const leaving = new AbortController();
    const answer = askStream({ signal: leaving.signal });
    await eventually('the upstream is called', () => upstream.running === 1);
    leaving.abort(new Error('no patience'));
    await expect(answer).rejects.toThrow('no patience');
    await eventually('the upstream is stopped', () => upstream.aborted === 1);
    await expect(askStream({ signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late');
    expect(upstream.seen).toHaveLength(1);
  });

  test.each(['gateway.fetch', 'the listener'] as const)(
    '%s pauses the upstream while its answer is not read, and goes on when it is',
    async (side) => {
      // More bytes than the system's buffers hold, in fewer characters than an answer may have.
      const part = '文'.repeat(10_000);
      const [opening = '', text = '', ...ending] = chatFrames([part]);
      const bytes = Buffer.from(text);
      const parts = 1_500;
      let sent = 0;
      upstream.play(async (response) => {
        sendStream(response, [opening]);
        for (sent = 0; sent < parts; sent++)
          if (!response.write(bytes)) await new Promise((resolve) => void response.once('drain', resolve));
        response.end(ending.join(''));
      });
      const asked = { ...body, stream: true };
      const answer = await (side === 'the listener'
        ? gateway.post('/v1/chat/completions', asked)
        : askStream());
      const reader = answer.body?.getReader();
      await reader?.read();
      let seen = -1;
      let unchangedTurns = 0;
      await eventually('the upstream is paused', () => {
        unchangedTurns = sent === seen ? unchangedTurns + 1 : 0;
        seen = sent;
        return unchangedTurns > 500;
      });
      expect(sent).toBeLessThan(parts);
      let length = 0;
      for (let read = await reader?.read(); read?.done === false; read = await reader?.read())
        length += read.value.length;
      expect(length).toBeGreaterThan(parts * part.length * 3);
      expect(sent).toBe(parts);
    },
  );

  test('passes a path on, and breaks off when its upstream does', async () => {
    upstream.play((response, request) => sendJson(response, 201, request.body));
    const passed = await ask('/tokenize?x=1', { method: 'POST', body: '{"content":"a"}' });
    expect([passed.status, await passed.text()]).toEqual([201, '{"content":"a"}']);
    upstream.play((response) => void response.writeHead(204).end());
    expect((await ask('/tokenize')).status).toBe(204);
    upstream.play((response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('half');
      setTimeout(() => cut(response, 'rst'), 50);
    });
    const broken = readLive(ask('/tokenize'));
    await broken.ended;
    expect(broken).toMatchObject({ text: 'half', broken: true });
  });

  test.each([
    ['was read', {}, (request) => request.json()],
    ['was read, with its length', { 'content-length': '7' }, (request) => request.json()],
    ['is locked by a reader', {}, (request) => request.body?.getReader()],
  ] satisfies [string, Readonly<Record<string, string>>, (request: Request) => unknown][])(
    'refuses a request whose body %s before it, without a charge or a call, also on a passthrough path',
    async (_name, headers, take) => {
      upstream.play((response) => void response.end('x'));
      for (const path of ['/rerank', '/v1/chat/completions']) {
        const request = new Request(origin + path, {
          method: 'POST',
          body: '{"a":1}',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            ...headers,
          },
        });
        await take(request);
        const answer = await gateway.gateway.fetch(request);
        expect([answer.status, await answer.text()]).toEqual([
          500,
          expect.stringContaining('consumed the request body'),
        ]);
      }
      expect(upstream.seen).toEqual([]);
      expect((await gateway.gateway.records.list()).data).toEqual([]);
      expect(await slots()).toBe(0);
    },
  );

  test('passes a request on without the length of a body that it does not have', async () => {
    upstream.play((response, { headers }) => void response.end(headers['content-length'] ?? 'none'));
    const answer = await ask('/tokenize', { method: 'POST', headers: { 'content-length': '10' } });
    expect([answer.status, await answer.text()]).toEqual([200, '0']);
  });

  test('ends a passthrough call at once, without a charge, when the request’s body breaks off', async () => {
    upstream.play((response) => void response.end('x'));
    let isBegun = false;
    const half = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (isBegun) return controller.error(new Error('gone'));
        isBegun = true;
        controller.enqueue(new Uint8Array(500));
      },
    });
    const answer = await ask('/rerank', { method: 'POST', body: half, duplex: 'half' });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining('broke off before its end'),
    ]);
    await eventually('the upstream has no open call', async () => (await upstream.connections()) === 0);
    const { data } = await gateway.gateway.records.list();
    expect(data).toMatchObject([{ outcome: 'refused', status: 400, charge: '0.00' }]);
    expect(await slots()).toBe(0);
  });

  test('serves no operator', async () => {
    expect((await ask('/admin/keys')).status).toBe(404);
    expect((await askAdmin(gateway, 'GET', '/keys')).status).toBe(200);
  });
});
