import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { holdStream } from '../support/held-stream.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import {
  chatFrames,
  cut,
  sayTexts,
  sendJson,
  sendStream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const price = { input: '1', output: '2' };
/** The price of the scripted upstream's usage. */
const cost = '0.000025';

/** How much time passes at once, in milliseconds. */
const stepMs = 1_000;

const question = { role: 'user', content: 'x' };
const requests = {
  chat: { path: '/v1/chat/completions', body: { model: 'small', messages: [question] } },
  responses: { path: '/v1/responses', body: { model: 'small', input: 'x' } },
};
type ProtocolName = keyof typeof requests;
const protocols = Object.keys(requests) as ProtocolName[];
const ways = protocols.flatMap((protocol) => [true, false].map((stream) => ({ protocol, stream })));

/** What is to be so of claims, on an engine. `createDatabase` makes a database on a server, `null` stands for SQLite. */
export function describeClaims(createDatabase: (() => Promise<TestDatabase>) | null): void {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let database: TestDatabase | null;
  let clock: FakeClock;
  let log: Record<string, unknown>[];
  beforeEach(async () => {
    upstream = await startUpstream();
    database = (await createDatabase?.()) ?? null;
    log = [];
  });
  afterEach(async () => {
    await gateway.close();
    await database?.drop();
    await upstream.close();
  });

  async function open(options: TestGatewayOptions = {}): Promise<void> {
    clock = createFakeClock();
    gateway = await startGateway({
      upstreamUrl: upstream.url,
      price,
      clock,
      logDestination: { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) },
      ...(database === null ? {} : { databaseUrl: database.url }),
      ...options,
    });
  }

  /** SQLite in a file, which has threads and outlives a gateway: in memory it starts in a fifth of the time. */
  const onFile = (): TestGatewayOptions =>
    database === null ? { storage: `${makeTemporaryFolder()}/textgate.db` } : {};

  const ask = (
    { protocol = 'chat', stream = true, name = 'once', ...extra }: AskOptions = {},
    init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Response> => {
    const { path, body } = requests[protocol];
    return gateway.post(
      path,
      { ...body, stream, ...extra },
      {
        ...init,
        headers: { 'idempotency-key': name, ...init.headers },
      },
    );
  };
  const read = (...asked: Parameters<typeof ask>) => readLive(ask(...asked));
  const records = async () =>
    (await askAdmin(gateway, 'GET', '/records?limit=50')).body.data as {
      outcome: string;
      charge: string;
      request_id: string;
    }[];
  const outcomes = () => log.filter(({ msg }) => msg === 'request').map(({ outcome }) => outcome);
  const hold = (texts: readonly string[]) => holdStream(upstream, texts);
  /** The ids of the requests that ended so, each with that of the request whose answer it got. */
  const tracesOf = (wanted: string) =>
    log.filter(({ outcome }) => outcome === wanted).map(({ requestId, replayOf }) => [requestId, replayOf]);
  /** Waits for the end of an answer, and lets time pass in which a settlement is tried again. */
  const endOf = async (answer: LiveAnswer): Promise<void> => {
    let isEnded = false;
    void answer.ended.then(() => (isEnded = true));
    await eventually('the answer ends', () => {
      clock.advance(10);
      return isEnded;
    });
  };
  /** Lets time pass, in steps in which leases are renewed on a server. */
  const pass = async (ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
      clock.advance(Math.min(stepMs, leftMs));
      await gateway.recorded();
    }
  };

  describe.each(ways)('$protocol, stream: $stream', (way) => {
    test('is joined while it runs: one call, one charge, and the same bytes for both', async () => {
      await open(onFile());
      const answering = Promise.withResolvers<ServerResponse>();
      upstream.play((response) => answering.resolve(response));
      const first = read(way);
      const response = await answering.promise;
      const second = read(way);
      await eventually('the second one has joined', async () => (await listening()) === 2);
      await sayTexts(['Hello ', 'world'])(response, {
        method: 'POST',
        path: '',
        headers: {},
        body: JSON.stringify({ stream: way.stream }),
      });
      await Promise.all([first.ended, second.ended]);
      expect(second.text).toBe(first.text);
      expect(first.text).toContain('world');
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(upstream.seen.length).toBe(1);
      expect(await records()).toMatchObject([{ outcome: 'completed', charge: cost }]);
      expect(first.headers.get('x-textgate-replayed')).toBe(null);
      expect(second.headers.get('x-textgate-replayed')).toBe('true');
      expect(second.headers.get('x-textgate-original-request')).toBe(first.headers.get('x-request-id'));
      expect(second.headers.get('x-textgate-charge')).toBe('0.00');
      expect(new Set(outcomes())).toEqual(new Set(['completed', 'joined']));
      expect(tracesOf('joined')).toEqual([[second, first].map(({ headers }) => headers.get('x-request-id'))]);
    });

    test('is replayed after its end, byte for byte, and costs nothing', async () => {
      await open();
      upstream.play(sayTexts(['Hello ', 'world']));
      const first = read(way);
      await first.ended;
      await pass(60_000);
      const second = read(way);
      await second.ended;
      expect(second.text).toBe(first.text);
      expect(second.headers.get('x-textgate-replayed')).toBe('true');
      expect(second.headers.get('x-textgate-charge')).toBe('0.00');
      expect(upstream.seen.length).toBe(1);
      expect(await records()).toMatchObject([{ charge: cost }]);
      expect(outcomes()).toEqual(['completed', 'replayed']);
      expect(tracesOf('replayed')).toEqual([
        [second, first].map(({ headers }) => headers.get('x-request-id')),
      ]);
    });

    test("can't be replayed when its text is gone: it is a 409 with its charge, and runs no second time", async () => {
      await open({ resume: { replay: '1s' } });
      upstream.play(sayTexts(['Hello']));
      const first = read(way);
      await first.ended;
      clock.advance(1_000);
      const second = await ask(way);
      const { error } = (await second.json()) as { error: { code: string; message: string } };
      expect([second.status, error.code]).toEqual([409, 'replay_unavailable']);
      expect(error.message).toContain(String(first.headers.get('x-request-id')));
      expect(error.message).toContain(cost);
      expect(second.headers.get('x-should-retry')).toBe('false');
      expect(upstream.seen.length).toBe(1);
    });
  });

  /** How many clients get an answer, or wait for one. */
  const listening = async (): Promise<number> => (await gateway.gateway.inFlight()).data.length;

  test('goes on for a while when its client leaves, and a client that comes back gets all of it', async () => {
    await open();
    const holding = hold(['a', 'b', 'c', 'd']);
    const leaving = new AbortController();
    const first = read({}, { signal: leaving.signal });
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it has left', () => first.broken);
    stream.say();
    stream.say();
    await pass(9_000);
    const second = read();
    await eventually('the second one has joined', () => second.text.includes('"c"'));
    // The first one's grace is over, and another client is there.
    await pass(9_000);
    stream.finish();
    await endOf(second);
    expect(second.broken).toBe(false);
    expect(second.text).toContain('[DONE]');
    expect(stream.isCut()).toBe(false);
    expect(upstream.seen.length).toBe(1);
    expect(await records()).toMatchObject([{ outcome: 'completed', charge: cost }]);
  });

  test('ends in its grace without a client, is charged, and is there for the one who comes back', async () => {
    await open();
    const holding = hold(['a', 'b']);
    const leaving = new AbortController();
    const first = read({}, { signal: leaving.signal });
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it has left', () => first.broken);
    stream.finish();
    await eventually('it is settled', async () => (await records())[0]?.outcome === 'completed');
    const second = read();
    await second.ended;
    expect(second.text).toContain('[DONE]');
    expect(upstream.seen.length).toBe(1);
    expect(await records()).toMatchObject([{ charge: cost }]);
  });

  test('is stopped when no client has come back in time, is paid for, and is not answered a second time', async () => {
    await open({ resume: { grace: '3s' } });
    const holding = hold(['a', 'b']);
    const leaving = new AbortController();
    const first = read({}, { signal: leaving.signal });
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('its grace has begun', async () => {
      const { body } = await askAdmin(gateway, 'GET', '/in-flight');
      return body.data[0]?.listening === 0;
    });
    clock.advance(2_999);
    // What a grace that ended too early would do reaches the upstream over a socket.
    await askAdmin(gateway, 'GET', '/in-flight');
    expect(stream.isCut()).toBe(false);
    clock.advance(1);
    await eventually('its grace is over', stream.isCut);
    await eventually('it is settled', async () => {
      clock.advance(10);
      return (await records())[0]?.outcome === 'client_closed';
    });
    const second = await ask();
    expect(second.status).toBe(409);
    expect(upstream.seen.length).toBe(1);
    expect(await records()).toHaveLength(1);
  });

  test('without the header, a client that leaves stops its upstream at once', async () => {
    await open();
    const holding = hold(['a', 'b']);
    const leaving = new AbortController();
    const { path, body } = requests.chat;
    const first = readLive(gateway.post(path, { ...body, stream: true }, { signal: leaving.signal }));
    const stream = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it is stopped', stream.isCut);
  });

  test('is another request with another body, path or ceiling: a 422', async () => {
    await open();
    upstream.play(sayTexts(['Hello']));
    await (await ask()).text();
    const others = [
      await ask({ max_tokens: 3 }),
      await ask({ protocol: 'responses' }),
      await ask({}, { headers: { 'x-textgate-max-cost': '1' } }),
    ];
    for (const other of others) {
      const { error } = (await other.json()) as { error: { code: string; param: string } };
      expect([other.status, error.code, error.param]).toEqual([
        422,
        'idempotency_key_reused',
        'idempotency-key',
      ]);
    }
    expect(upstream.seen.length).toBe(1);
    // Also once its answer is gone, and where another key has used the name.
    await pass(121_000);
    expect((await ask({ max_tokens: 3 })).status).toBe(422);
    const { secret } = await gateway.gateway.createKey('other');
    const elsewhere = await ask({ max_tokens: 3 }, { headers: { authorization: `Bearer ${secret}` } });
    await elsewhere.text();
    expect(elsewhere.status).toBe(200);
    expect(upstream.seen.length).toBe(2);
  });

  test('that came to nothing runs anew', async () => {
    await open();
    upstream.play((response) => sendJson(response, 500, '{"error":{"message":"no"}}'));
    expect((await ask()).status).toBe(502);
    upstream.play((response) => cut(response, 'rst'));
    expect((await ask()).status).toBe(502);
    expect((await ask({ model: 'none' })).status).toBe(404);
    upstream.play(sayTexts(['Hello']));
    const answered = await ask();
    expect(await answered.text()).toContain('Hello');
    expect(answered.headers.get('x-textgate-replayed')).toBe(null);
    expect((await records()).map(({ charge }) => charge).toSorted()).toEqual(['0.00', '0.00', cost]);
  });

  test('that was refused for a limit or for money is free', async () => {
    await open({ limits: { concurrency: 1 } });
    const holding = hold(['a']);
    const other = read({ name: 'other' });
    const stream = await holding;
    expect((await ask()).status).toBe(429);
    stream.finish();
    await other.ended;
    upstream.play(sayTexts(['Hello']));
    expect(await (await ask()).text()).toContain('Hello');

    const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 0 });
    const paying = { headers: { authorization: `Bearer ${secret}` } };
    expect((await ask({}, paying)).status).toBe(402);
    await gateway.gateway.keys.credit(key.id, { amount: '1', reference: 'first' });
    const paid = await ask({}, paying);
    expect([paid.status, (await paid.text()).includes('Hello')]).toEqual([200, true]);
    expect(upstream.seen.length).toBe(3);
  });

  test('that broke off behind text was paid for, and is not answered a second time', async () => {
    await open();
    upstream.play((response) => {
      sendStream(response, chatFrames(['a', 'b']).slice(0, 3));
      setImmediate(() => cut(response, 'rst'));
    });
    const first = read();
    await first.ended;
    expect(first.broken).toBe(true);
    const second = await ask();
    expect(second.status).toBe(409);
    expect(upstream.seen.length).toBe(1);
  });

  test('that is joined gives both the failure of a stream', async () => {
    await open();
    const answering = Promise.withResolvers<ServerResponse>();
    upstream.play((response) => {
      sendStream(response, chatFrames(['a', 'b']).slice(0, 2));
      answering.resolve(response);
    });
    const first = read();
    const response = await answering.promise;
    await eventually('it has text', () => first.text.includes('"a"'));
    const second = read();
    await eventually('both have it', () => second.text.includes('"a"'));
    cut(response, 'rst');
    await Promise.all([first.ended, second.ended]);
    expect([first.broken, second.broken]).toEqual([true, true]);
    expect(second.text).toBe(first.text);
    await eventually('both are logged', () => outcomes().length === 2);
    expect(log.filter(({ msg }) => String(msg).includes('not sent'))).toEqual([]);
  });

  test('that can not be had again is refused to all who ask for it at a time', async () => {
    await open({ resume: { replay: '0s' } });
    upstream.play(sayTexts(['Hello']));
    await (await ask()).text();
    const asked = await Promise.all([ask(), ask(), ask()]);
    expect(asked.map(({ status }) => status)).toEqual([409, 409, 409]);
  });

  test('is passed on as any other on a passthrough path, and is no claim there', async () => {
    await open({ passthrough: [{ path: '/rerank', upstream: 'local', free: true }] });
    const waiting: ServerResponse[] = [];
    upstream.play((response) => void waiting.push(response));
    const passOn = (name: string): Promise<Response> =>
      gateway.post('/rerank', {}, { headers: { 'idempotency-key': name } });
    const passed = [passOn('once'), passOn('once')];
    await eventually('neither waits for the other one', () => waiting.length === 2);
    for (const response of waiting) sendJson(response, 200, '{"done":true}');
    for (const one of passed) expect(await (await one).json()).toEqual({ done: true });
    upstream.play((response) => sendJson(response, 200, '{"done":true}'));
    expect((await passOn('no name of a claim')).status).toBe(200);
    upstream.play(sayTexts(['Hello']));
    const answered = await ask();
    expect(await answered.text()).toContain('Hello');
    expect(answered.headers.get('x-textgate-replayed')).toBe(null);
  });

  test('goes on when one of those who have joined it is cancelled', async () => {
    await open();
    const holding = hold(['a', 'b']);
    const first = read();
    const stream = await holding;
    const second = read();
    await eventually('both have text', () => [first, second].every(({ text }) => text.includes('"a"')));
    const { data: running } = (await askAdmin(gateway, 'GET', '/in-flight')).body;
    expect(running).toMatchObject([
      { waits_for: null, mode: 'stream', model: 'small', listening: 2, joined: null },
      {
        waits_for: null,
        mode: 'stream',
        model: 'small',
        listening: null,
        joined: first.headers.get('x-request-id'),
      },
    ]);
    const id = second.headers.get('x-request-id');
    expect((await gateway.post(`/v1/key/requests/${id}/cancel`, {})).status).toBe(200);
    await second.ended;
    expect(second.broken).toBe(true);
    stream.finish();
    await first.ended;
    expect(first.text).toContain('[DONE]');
    expect(outcomes()).toEqual(['cancelled', 'completed']);
  });

  test('waits for one that is asking, and runs itself where that is refused', async () => {
    await open({ limits: { concurrency: 1, queueWait: '5s' } });
    const holding = hold(['a']);
    const other = read({ name: 'other' });
    const stream = await holding;
    const first = read();
    const metrics = async () => (await fetch(`${gateway.adminUrl}/metrics`)).text();
    await eventually('it waits', async () =>
      (await metrics()).includes('textgate_requests_waiting{reason="slot"} 1'),
    );
    const second = read();
    await eventually('both wait', async () => (await listening()) === 3);
    upstream.play(sayTexts(['Hello']));
    // The gauge says that it waits a moment before its time to wait begins.
    await eventually('the first is refused', async () => {
      clock.advance(100);
      return (await listening()) === 2;
    });
    stream.finish();
    await Promise.all([other.ended, first.ended, second.ended]);
    expect(first.status).toBe(429);
    expect(second.status).toBe(200);
    expect(second.headers.get('x-textgate-replayed')).toBe(null);
  });

  test('counts by its key: a replaced secret goes on, a revoked key has nothing', async () => {
    await open();
    upstream.play(sayTexts(['Hello']));
    const { key, secret } = await gateway.gateway.createKey('rotated');
    const bearer = (value: string) => ({ headers: { authorization: `Bearer ${value}` } });
    await (await ask({}, bearer(secret))).text();
    const rotated = await gateway.gateway.keys.rotate(key.id);
    const again = await ask({}, bearer(rotated.key));
    expect([again.status, again.headers.get('x-textgate-replayed')]).toEqual([200, 'true']);
    await again.text();
    await gateway.gateway.keys.revoke(key.id);
    expect((await ask({}, bearer(rotated.key))).status).toBe(401);
    expect(upstream.seen.length).toBe(1);
  });

  test.each(['', 'a b', 'ä', 'x'.repeat(256)])('is refused with the name "%s"', async (name) => {
    await open();
    const refused = await ask({
      name: encodeURI(name) === name ? name : Buffer.from(name).toString('latin1'),
    });
    const { error } = (await refused.json()) as { error: { code: string; param: string } };
    expect([refused.status, error.code, error.param]).toEqual([400, 'invalid_value', 'idempotency-key']);
    expect(upstream.seen.length).toBe(0);
  });

  test('says in the head of a whole answer that it is too long to be had again', async () => {
    await open();
    upstream.play(sayTexts(['x'.repeat(131_073)]));
    const long = await ask({ stream: false });
    await long.text();
    expect([long.status, long.headers.get('x-textgate-replayable')]).toEqual([200, 'false']);
    expect((await ask({ stream: false })).status).toBe(409);
    upstream.play(sayTexts(['Hello']));
    const short = await ask({ stream: false, name: 'short' });
    await short.text();
    expect(short.headers.get('x-textgate-replayable')).toBe(null);
  });

  test('has a bound of clients that join one request, and all requests of a key', async () => {
    await open();
    const holding = hold(['a']);
    const first = read();
    const stream = await holding;
    const joined = Array.from({ length: 8 }, () => read());
    await eventually('eight have joined', async () => (await listening()) === 9);
    const refused = await ask();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    stream.finish();
    await Promise.all([first, ...joined].map(({ ended }) => ended));
    expect(new Set(joined.map(({ text }) => text))).toEqual(new Set([first.text]));
  });

  test('is known again by a process that starts anew: what ended is a 409, what ran is free', async () => {
    const storage = onFile();
    await open(storage);
    upstream.play(sayTexts(['Hello']));
    await (await ask({ name: 'ended' })).text();
    const { key: secret, ...first } = gateway;
    await first.close();
    await open(storage);
    const known = { headers: { authorization: `Bearer ${secret}` } };
    const ended = await ask({ name: 'ended' }, known);
    expect(ended.status).toBe(409);
    const free = await ask({ name: 'another' }, known);
    expect([free.status, (await free.text()).includes('Hello')]).toEqual([200, true]);
  });
}

interface AskOptions {
  readonly protocol?: ProtocolName;
  readonly stream?: boolean;
  /** The idempotency key. */
  readonly name?: string;
  readonly model?: string;
  readonly max_tokens?: number;
}
