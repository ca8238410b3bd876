import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { holdStream } from '../support/held-stream.ts';
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

const texts = ['Hello ', 'wor', 'ld'];

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let clock: FakeClock;
beforeEach(async () => {
  upstream = await startUpstream();
  clock = createFakeClock();
  gateway = await startGateway({ upstreamUrl: upstream.url, price: { input: '1', output: '2' }, clock });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const bodies = {
  '/v1/chat/completions': { model: 'small', messages: [{ role: 'user', content: 'x' }], stream: true },
  '/v1/responses': { model: 'small', input: 'x', stream: true },
};
type Path = keyof typeof bodies;
const paths = Object.keys(bodies) as Path[];

const named = { 'idempotency-key': 'once' };
const ask = (path: Path, headers: Record<string, string>, extra: object = {}): Promise<Response> =>
  gateway.post(path, { ...bodies[path], ...extra }, { headers });
const get = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(gateway.url + path, { headers: { authorization: `Bearer ${gateway.key}` }, ...init });

interface ErrorOfAnswer {
  readonly status: number;
  readonly code: string;
  readonly param: string | null;
  readonly message: string;
}
async function errorOf(response: Response): Promise<ErrorOfAnswer> {
  const { error } = (await response.json()) as { error: Omit<ErrorOfAnswer, 'status'> };
  return { ...error, status: response.status };
}

/** The events of a stream as they were sent, each with its id. */
function eventsOf(stream: string): { readonly id: string; readonly frame: string }[] {
  const frames = stream.split('\n\n').filter((frame) => frame !== '');
  return frames.map((frame) => ({ id: /^id: (.*)$/m.exec(frame)?.[1] ?? '', frame: `${frame}\n\n` }));
}

const rest = (stream: string, from: number): string =>
  eventsOf(stream)
    .slice(from)
    .map(({ frame }) => frame)
    .join('');

/** The id of the response of a stream that has begun. */
const responseIdOf = (stream: string): string => /"id":"(resp_[0-9a-f]{32})"/.exec(stream)?.[1] ?? '';

/** Reads a stream of the library of OpenAI; the text is that of the deltas that it had. */
async function readToEnd(events: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
  const read = { id: '', output_text: '' };
  for await (const event of events) {
    if (event.type === 'response.output_text.delta') read.output_text += event.delta;
    if (event.type === 'response.completed') read.id = event.response.id;
  }
  return read;
}

describe.each(paths)('a stream of %s', (path) => {
  test('has an id with each event where its request is named, and is the same but for that', async () => {
    upstream.play(sayTexts(texts));
    const plain = await (await ask(path, {})).text();
    const numbered = await (await ask(path, named)).text();
    const events = eventsOf(numbered);
    const first = events[0]?.id ?? '';
    const [, prefix] = /^([0-9a-f]{8}-)0$/.exec(first) ?? [];
    expect(events.map(({ id }) => id)).toEqual(events.map((_event, number) => `${prefix}${number}`));
    const nameless = (stream: string) =>
      stream.replaceAll(/[0-9a-f]{32}/g, 'id').replaceAll(/"created[a-z_]*":\d+/g, '');
    expect(plain).not.toContain('id: ');
    expect(nameless(numbered).replaceAll(/^id: .*\n/gm, '')).toBe(nameless(plain));
  });

  test('goes on behind any of its events, byte for byte, and runs once', async () => {
    upstream.play(sayTexts(texts));
    const whole = await (await ask(path, named)).text();
    const events = eventsOf(whole);
    for (const [number, { id }] of events.entries()) {
      const resumed = await ask(path, { ...named, 'last-event-id': id });
      expect(resumed.headers.get('x-textgate-replayed')).toBe('true');
      expect(await resumed.text()).toBe(rest(whole, number + 1));
    }
    expect(events.length).toBeGreaterThan(texts.length);
    expect(upstream.seen.length).toBe(1);
  });

  test('goes on while it runs, also behind an event that is still to come', async () => {
    const holding = holdStream(upstream, ['a', 'b', 'c', 'd']);
    const first = readLive(ask(path, named));
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const last = eventsOf(first.text).at(-1)?.id ?? '';
    const second = readLive(ask(path, { ...named, 'last-event-id': last }));
    const [prefix, number] = last.split('-');
    const ahead = Number(number) + 2;
    const third = readLive(ask(path, { ...named, 'last-event-id': `${prefix}-${ahead}` }));
    await eventually('both have joined', async () => (await gateway.gateway.inFlight()).data.length === 3);
    stream.say();
    await eventually('the second one goes on', () => second.text.includes('"b"'));
    stream.finish();
    await Promise.all([first, second, third].map(({ ended }) => ended));
    expect(second.text).toBe(rest(first.text, ahead - 1));
    expect(third.text).toBe(rest(first.text, ahead + 1));
    expect(third.text).toContain('"d"');
    expect(upstream.seen.length).toBe(1);
  });

  test('that fails tells all so who have gone on with it', async () => {
    upstream.play((response) => {
      sendStream(response, chatFrames(['a', 'b']).slice(0, 3));
      setTimeout(() => cut(response, 'rst'), 50);
    });
    const first = readLive(ask(path, named));
    await eventually('it has text', () => first.text.includes('"a"'));
    const [prefix] = (eventsOf(first.text).at(-1)?.id ?? '').split('-');
    const second = readLive(ask(path, { ...named, 'last-event-id': `${prefix}-1000` }));
    await Promise.all([first.ended, second.ended]);
    expect(second.text).toContain('upstream_truncated');
    expect(second.text).not.toContain('"a"');
  });
});

describe('an event to go on behind', () => {
  // A number alone does not say of which run it is: after one that came to nothing, the rest would be that of another text.
  test.each(['', 'x', '3', '-1', '1.5', '0123456789abcdef-1', '12345678-', '1, 2', '9'.repeat(16)])(
    'is refused as "%s"',
    async (place) => {
      const refused = await errorOf(await ask('/v1/chat/completions', { ...named, 'last-event-id': place }));
      expect(refused).toMatchObject({ status: 400, code: 'invalid_value', param: 'last-event-id' });
      expect(upstream.seen.length).toBe(0);
    },
  );

  test('needs the name of the request', async () => {
    const refused = await errorOf(await ask('/v1/chat/completions', { 'last-event-id': '00000000-3' }));
    expect(refused).toMatchObject({ status: 400, code: 'invalid_value', param: 'last-event-id' });
    expect(refused.message).toContain('idempotency-key');
  });

  test('needs a stream that has begun: nothing runs for it, and nothing is another one’s rest', async () => {
    const resume = (place: string, extra: object = {}) =>
      ask('/v1/chat/completions', { ...named, 'last-event-id': place }, extra);
    upstream.play(sayTexts(texts));
    expect(await errorOf(await resume('00000000-3'))).toMatchObject({
      status: 409,
      code: 'replay_unavailable',
    });
    expect(upstream.seen.length).toBe(0);

    await (await ask('/v1/chat/completions', named)).text();
    expect(await errorOf(await resume('00000000-1'))).toMatchObject({
      status: 409,
      code: 'replay_unavailable',
      param: 'last-event-id',
    });
    await (await ask('/v1/chat/completions', { 'idempotency-key': 'whole' }, { stream: false })).text();
    const whole = ask(
      '/v1/chat/completions',
      { 'idempotency-key': 'whole', 'last-event-id': '00000000-1' },
      { stream: false },
    );
    expect(await errorOf(await whole)).toMatchObject({ status: 409, code: 'replay_unavailable' });
    expect(upstream.seen.length).toBe(2);
  });
});

describe('a response of a named request', () => {
  const events = async (id: string, query: string): Promise<string> =>
    (await get(`/v1/responses/${id}?stream=true${query}`)).text();

  test('is read again as a stream, from the beginning or behind any event, byte for byte', async () => {
    upstream.play(sayTexts(texts));
    const whole = await (await ask('/v1/responses', named)).text();
    const id = responseIdOf(whole);
    expect(await events(id, '')).toBe(whole);
    for (const number of eventsOf(whole).keys())
      expect(await events(id, `&starting_after=${number}`)).toBe(rest(whole, number + 1));
    expect(await events(id, '&starting_after=100')).toBe('');
    expect(upstream.seen.length).toBe(1);
  });

  test('is read while it runs: its object is in progress, its stream goes on', async () => {
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask('/v1/responses', named));
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const id = responseIdOf(first.text);
    const running = await get(`/v1/responses/${id}`);
    expect(await running.json()).toMatchObject({ id, object: 'response', status: 'in_progress', output: [] });
    const second = readLive(get(`/v1/responses/${id}?stream=true`));
    await eventually('it has joined', () => second.text.includes('"a"'));
    stream.finish();
    await Promise.all([first.ended, second.ended]);
    expect(second.text).toBe(first.text);
    const ended = await get(`/v1/responses/${id}`);
    const last = eventsOf(first.text).at(-1)?.frame ?? '';
    const { response } = JSON.parse(/^data: (.*)$/m.exec(last)?.[1] ?? '{}') as { response: unknown };
    expect(await ended.json()).toEqual(response);
  });

  test('is the same object, byte for byte, as its request has got where that was no stream', async () => {
    upstream.play(sayTexts(texts));
    const body = await (await ask('/v1/responses', named, { stream: false })).text();
    const { id } = JSON.parse(body) as { id: string };
    expect(await (await get(`/v1/responses/${id}`)).text()).toBe(body);
    expect(eventsOf(await events(id, '')).length).toBeGreaterThan(texts.length);
    clock.advance(120_000);
    expect(await errorOf(await get(`/v1/responses/${id}`))).toMatchObject({ status: 404 });
  });

  test('is cancelled for all who wait for it, and stays the same object', async () => {
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask('/v1/responses', named));
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const id = responseIdOf(first.text);
    const cancel = async () => {
      const response = await get(`/v1/responses/${id}/cancel`, { method: 'POST' });
      return [response.status, await response.text()] as const;
    };
    const [status, body] = await cancel();
    expect([status, JSON.parse(body)]).toMatchObject([200, { id, status: 'cancelled' }]);
    await first.ended;
    expect(first.text).toContain('response.failed');
    expect(stream.isCut()).toBe(true);
    expect(await cancel()).toEqual([200, body]);
    expect(await (await get(`/v1/responses/${id}`)).text()).toBe(body);
    // A part is no answer: it is not told as a stream.
    expect((await get(`/v1/responses/${id}?stream=true`)).status).toBe(404);
    expect((await ask('/v1/responses', named)).status).toBe(409);
  });

  test('that has ended is not cancelled any more', async () => {
    upstream.play(sayTexts(texts));
    const body = await (await ask('/v1/responses', named, { stream: false })).text();
    const { id } = JSON.parse(body) as { id: string };
    const cancelled = await get(`/v1/responses/${id}/cancel`, { method: 'POST' });
    expect([cancelled.status, await cancelled.text()]).toEqual([200, body]);
  });

  test('that broke off has failed', async () => {
    upstream.play((response) => {
      sendStream(response, chatFrames(['a', 'b']).slice(0, 3));
      setImmediate(() => cut(response, 'rst'));
    });
    const stream = await (await ask('/v1/responses', named)).text();
    const failed = await get(`/v1/responses/${responseIdOf(stream)}`);
    expect(await failed.json()).toMatchObject({
      status: 'failed',
      error: { code: 'upstream_truncated' },
      output: [],
    });
  });

  test('is nothing to another key, nor is one that is none: the same words for all', async () => {
    upstream.play(sayTexts(texts));
    const of = async (path: Path, headers: Record<string, string>) =>
      JSON.parse(await (await ask(path, headers, { stream: false })).text()) as { id: string };
    const kept = await of('/v1/responses', named);
    const unnamed = await of('/v1/responses', {});
    const chat = await of('/v1/chat/completions', { 'idempotency-key': 'chat' });
    const { secret } = await gateway.gateway.createKey('other');
    const other = { headers: { authorization: `Bearer ${secret}` } };
    const asked = await Promise.all(
      [
        get(`/v1/responses/${kept.id}`, other),
        get(`/v1/responses/${kept.id}?stream=true`, other),
        get(`/v1/responses/${kept.id}/cancel`, { ...other, method: 'POST' }),
        get(`/v1/responses/${unnamed.id}`),
        get(`/v1/responses/${chat.id.replace('chatcmpl-', 'resp_')}`),
        get(`/v1/responses/${chat.id}`),
        get(`/v1/responses/resp_${'0'.repeat(32)}`),
        get('/v1/responses/none?stream=true'),
      ].map(async (asking) => errorOf(await asking)),
    );
    const [first] = asked;
    expect(first).toMatchObject({ status: 404, code: 'response_not_found', param: 'response_id' });
    for (const refusal of asked) expect(refusal).toEqual(first);
    expect((await get(`/v1/responses/${kept.id}`, { headers: {} })).status).toBe(401);
  });

  test.each([
    'stream=maybe',
    'stream=true&starting_after=-1',
    'stream=true&starting_after=x',
    'starting_after=1',
    'stream=true&starting_after=',
    'stream=true&starting_after=0x2',
    'stream=true&starting_after=1.0',
    'stream=true&starting_after=1&starting_after=2',
  ])('is refused with %s', async (query) => {
    const refused = await errorOf(await get(`/v1/responses/resp_${'0'.repeat(32)}?${query}`));
    expect(refused).toMatchObject({ status: 400, code: 'invalid_value' });
  });

  test('is read, gone on with and cancelled by the library of OpenAI', async () => {
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    upstream.play(sayTexts(texts));
    const asked = { model: 'small', input: 'x', stream: true } as const;
    const { id, output_text: text } = await readToEnd(
      await client.responses.create(asked, { headers: named }),
    );
    const read = await client.responses.retrieve(id);
    expect([read.status, read.output_text]).toEqual(['completed', text]);
    const stream = await client.responses.retrieve(id, { stream: true, starting_after: 4 });
    expect((await readToEnd(stream)).output_text).toBe('world');
    expect((await client.responses.cancel(id)).status).toBe('completed');
    const reader = client.responses.stream({ response_id: id, starting_after: 4 });
    expect((await reader.finalResponse()).output_text).toBe(text);
  });

  test('is not begun in the background, and its input is not kept', async () => {
    upstream.play((response) => sendJson(response, 500, '{}'));
    expect(await errorOf(await ask('/v1/responses', named, { background: true }))).toMatchObject({
      status: 400,
    });
    expect((await get(`/v1/responses/resp_${'0'.repeat(32)}/input_items`)).status).toBe(404);
    expect((await get(`/v1/responses/resp_${'0'.repeat(32)}`, { method: 'DELETE' })).status).toBe(405);
  });
});
