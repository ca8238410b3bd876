import type { ServerResponse } from 'node:http';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { holdStream } from '../support/held-stream.ts';
import type { HeldStream } from '../support/held-stream.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user' as const, content: 'x' }] };

/** The price of the scripted upstream's usage. */
const cost = '0.000025';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let clock: FakeClock;
let secret: string;
beforeEach(async () => {
  upstream = await startUpstream();
  clock = createFakeClock();
  gateway = await startGateway({ upstreamUrl: upstream.url, price: { input: '1', output: '2' }, clock });
  ({ secret } = await gateway.gateway.createKey('retried', { joinRetriesMs: 10_000 }));
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

interface AskOptions {
  /** How often the library has sent it before; none is said for `null`. */
  readonly retry?: number | null;
  readonly signal?: AbortSignal;
  readonly extra?: object;
  readonly key?: string;
}

const ask = ({ retry = null, signal, extra = {}, key = secret }: AskOptions = {}): LiveAnswer =>
  readLive(
    gateway.post(
      '/v1/chat/completions',
      { ...body, stream: true, ...extra },
      {
        signal: signal ?? null,
        headers: {
          authorization: `Bearer ${key}`,
          ...(retry === null ? {} : { 'x-stainless-retry-count': String(retry) }),
        },
      },
    ),
  );

const records = async () =>
  (await askAdmin(gateway, 'GET', '/records?limit=50')).body.data as {
    outcome: string | null;
    charge: string;
  }[];

/** A stream whose client has got some of it, and leaves. */
async function leaveStream(
  key = secret,
): Promise<{ readonly stream: HeldStream; readonly first: LiveAnswer }> {
  const holding = holdStream(upstream, ['a', 'b', 'c']);
  const leaving = new AbortController();
  const first = ask({ retry: 0, signal: leaving.signal, key });
  const stream = await holding;
  await eventually('it has text', () => first.text.includes('"a"'));
  leaving.abort();
  await eventually('it has left', () => first.broken);
  return { stream, first };
}

const running = async (): Promise<number> => (await gateway.gateway.inFlight()).data.length;

describe('a retry of a library, of a key that joins them,', () => {
  test('gets the answer that its client has left, from the beginning: one call, one charge', async () => {
    const { stream, first } = await leaveStream();
    stream.say();
    const second = ask({ retry: 1 });
    await eventually('it has joined', () => second.text.includes('"b"'));
    stream.finish();
    await second.ended;
    expect(second.text.startsWith(first.text)).toBe(true);
    expect(second.text).toContain('[DONE]');
    expect(second.text).not.toContain('\nid: ');
    expect(second.headers.get('x-textgate-replayed')).toBe('true');
    expect(second.headers.get('x-textgate-charge')).toBe('0.00');
    expect([stream.isCut(), upstream.seen.length]).toEqual([false, 1]);
    expect(await records()).toMatchObject([{ outcome: 'completed', charge: cost }]);
  });

  test('gets an answer that ended without its client, and no later one gets it again', async () => {
    const { stream } = await leaveStream();
    stream.finish();
    await eventually('it is settled', async () => (await records())[0]?.outcome === 'completed');
    const second = ask({ retry: 1 });
    await second.ended;
    expect([second.headers.get('x-textgate-replayed'), upstream.seen.length]).toEqual(['true', 1]);
    upstream.play(sayTexts(['another']));
    const third = ask({ retry: 1 });
    await third.ended;
    expect(third.text).toContain('another');
    expect(upstream.seen.length).toBe(2);
  });

  test('is the same for whole answers, with the library of OpenAI, which gives up and sends it again', async () => {
    const answering: ServerResponse[] = [];
    upstream.play((response) => void answering.push(response));
    const client = new OpenAI({ apiKey: secret, baseURL: `${gateway.url}/v1`, maxRetries: 2, timeout: 300 });
    const asked = client.chat.completions.create(body);
    await eventually('a retry has come', async () => (await running()) >= 2);
    const [first] = answering;
    if (first === undefined) throw new Error('there is one');
    await sayTexts(['Hello'])(first, { method: 'POST', path: '', headers: {}, body: JSON.stringify(body) });
    const answer = await asked;
    expect(answer.choices[0]?.message.content).toBe('Hello');
    expect(upstream.seen.length).toBe(1);
    expect(await records()).toMatchObject([{ outcome: 'completed', charge: cost }]);
  });

  test('waits for the old connection of its client, which may end after it has come', async () => {
    const holding = holdStream(upstream, ['a', 'b']);
    const leaving = new AbortController();
    const first = ask({ retry: 0, signal: leaving.signal });
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const second = ask({ retry: 1 });
    await eventually('it waits', async () => (await running()) === 2);
    clock.advance(1_000);
    leaving.abort();
    await eventually('it has joined', () => second.text.includes('"a"'));
    stream.finish();
    await second.ended;
    expect(upstream.seen.length).toBe(1);
  });

  test('is a request of its own while the first client is there: two equal ones are two', async () => {
    const holding = holdStream(upstream, ['a', 'b']);
    const first = ask({ retry: 0 });
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    upstream.play(sayTexts(['another']));
    const second = ask({ retry: 1 });
    await eventually('it runs by itself', () => {
      clock.advance(100);
      return second.text.includes('another');
    });
    stream.finish();
    await Promise.all([first.ended, second.ended]);
    expect(second.headers.get('x-textgate-replayed')).toBe(null);
    expect(upstream.seen.length).toBe(2);
  });

  test.each([
    ['is none of the first try', { retry: 0 }],
    ['does not say so', {}],
    ['asks something else', { retry: 1, extra: { max_tokens: 5 } }],
  ])('is a request of its own where it %s', async (_case, options) => {
    const { stream } = await leaveStream();
    upstream.play(sayTexts(['another']));
    const second = ask(options);
    await second.ended;
    expect(second.text).toContain('another');
    expect(upstream.seen.length).toBe(2);
    stream.finish();
  });

  test('is a request of its own once the first one was answered whole', async () => {
    upstream.play(sayTexts(['Hello']));
    await ask({ retry: 0 }).ended;
    await ask({ retry: 1 }).ended;
    expect(upstream.seen.length).toBe(2);
    expect((await records()).map(({ charge }) => charge)).toEqual([cost, cost]);
  });

  test('is a request of its own when no time is left: what was left is stopped and paid for', async () => {
    const { stream } = await leaveStream();
    await eventually('it is stopped', () => {
      clock.advance(1_000);
      return stream.isCut();
    });
    upstream.play(sayTexts(['another']));
    const second = ask({ retry: 1 });
    await second.ended;
    expect(second.text).toContain('another');
    await eventually('both are settled', async () => {
      clock.advance(10);
      return (await records()).every(({ outcome }) => outcome !== null);
    });
    expect((await records()).map(({ outcome }) => outcome)).toEqual(['completed', 'client_closed']);
  });

  test('joins what its own client has left, also when many connections of a key break at once: each one once', async () => {
    const count = 20;
    ({ secret } = await gateway.gateway.createKey('many', {
      joinRetriesMs: 10_000,
      concurrency: count,
      requestsPerMinute: 1_000,
    }));
    const answering: ServerResponse[] = [];
    upstream.play((response) => {
      sendStream(response, chatFrames(['a']).slice(0, 2));
      answering.push(response);
    });
    const leaving = new AbortController();
    const first = Array.from({ length: count }, () => ask({ retry: 0, signal: leaving.signal }));
    await eventually('all have text', () => first.every(({ text }) => text.includes('"a"')));
    leaving.abort();
    const retries = first.map(() => ask({ retry: 1 }));
    await eventually('all have joined', () => retries.every(({ text }) => text.includes('"a"')));
    for (const response of answering) response.end(chatFrames(['a']).slice(2).join(''));
    await Promise.all(retries.map(({ ended }) => ended));
    const ids = retries.map(({ headers }) => headers.get('x-textgate-original-request'));
    expect(new Set(ids).size).toBe(count);
    expect(upstream.seen.length).toBe(count);
    expect((await records()).map(({ charge }) => charge)).toEqual(Array.from({ length: count }, () => cost));
  });

  test('joins nothing of another key, nor of one that does not join them', async () => {
    const { secret: other } = await gateway.gateway.createKey('other', { joinRetriesMs: 10_000 });
    const { stream } = await leaveStream();
    upstream.play(sayTexts(['another']));
    const second = ask({ retry: 1, key: other });
    await second.ended;
    expect(second.text).toContain('another');
    stream.finish();
    const { secret: without } = await gateway.gateway.createKey('without');
    const left = await leaveStream(without);
    await eventually('it is stopped at once', left.stream.isCut);
  });

  test('is seen by its memory alone while it is kept', async () => {
    const { stream } = await leaveStream();
    stream.finish();
    await eventually('it is settled', async () => (await records())[0]?.outcome === 'completed');
    const kept = async () => {
      const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      return Number(/^textgate_kept_answer_bytes (\d+)$/m.exec(text)?.[1]);
    };
    expect(await kept()).toBeGreaterThan(0);
    clock.advance(10_000);
    expect(await kept()).toBe(0);
  });
});
