import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { holdStream } from '../support/held-stream.ts';
import { readLive } from '../support/live-answer.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { allEnded, serveWorkers } from '../support/served-workers.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const token = 'a token that the nodes know each other by'.replaceAll(' ', '-');
const bodies = {
  '/v1/chat/completions': { model: 'small', messages: [{ role: 'user', content: 'x' }] },
  '/v1/responses': { model: 'small', input: 'x' },
};
type Path = keyof typeof bodies;
const ways = (Object.keys(bodies) as Path[]).flatMap((path) =>
  [true, false].map((stream) => ({ path, stream })),
);

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`a named request, on two nodes${absent},`, () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
  });
  afterAll(async () => {
    await upstream.close();
    await database.drop();
  });

  const addresses = async (): Promise<readonly string[]> => {
    const rows = await onServer(
      'SELECT address FROM owners WHERE address IS NOT NULL ORDER BY renewed_at',
      database.url,
    );
    return rows.map(({ address }) => String(address));
  };

  /** Two nodes that know each other, and a key of both. */
  async function startNodes(listener: { tls?: { cert: string; key: string } } = {}) {
    const options = {
      upstreamUrl: upstream.url,
      databaseUrl: database.url,
      price: { input: '1', output: '2' },
      resume: { nodes: { host: '127.0.0.1', token, ...listener } },
    };
    const nodes = await Promise.all(
      [0, 1].map(() => startGateway({ ...options, spool: makeTemporaryFolder() })),
    );
    onTestFinished(() => Promise.all(nodes.map((node) => node.close())).then(() => {}));
    const [a, b] = nodes;
    if (a === undefined || b === undefined) throw new Error('there are two');
    // As soon as they take requests.
    expect(await addresses()).toHaveLength(2);
    const { secret } = await a.gateway.createKey('shared');
    const authorization = `Bearer ${secret}`;
    const name = randomUUID();
    const before = upstream.seen.length;
    return {
      a,
      b,
      calls: () => upstream.seen.length - before,
      ask: (
        node: TestGateway,
        path: Path,
        extra: object = {},
        headers: Record<string, string> = {},
        signal: AbortSignal | null = null,
      ) =>
        node.post(
          path,
          { ...bodies[path], stream: true, ...extra },
          { headers: { authorization, 'idempotency-key': name, ...headers }, signal },
        ),
      get: (node: TestGateway, path: string, init: RequestInit = {}) =>
        fetch(node.url + path, { headers: { authorization }, ...init }),
    };
  }

  /** Two nodes, and a key whose retries join what their clients have left. */
  async function startRetries(path: Path) {
    const { a, b, calls } = await startNodes();
    const { secret } = await a.gateway.createKey('retried', { joinRetriesMs: 30_000 });
    const ask = (node: TestGateway, retry: number, signal: AbortSignal | null = null) =>
      readLive(
        node.post(
          path,
          { ...bodies[path], stream: true },
          {
            signal,
            headers: { authorization: `Bearer ${secret}`, 'x-stainless-retry-count': String(retry) },
          },
        ),
      );
    return { a, b, calls, ask };
  }

  const running = async (node: TestGateway): Promise<number> => (await node.gateway.inFlight()).data.length;

  describe.each(ways)('$path, stream: $stream', ({ path, stream }) => {
    test('is joined on the other one while it runs: one call, one charge, the same bytes', async () => {
      const { a, b, ask, calls } = await startNodes();
      const holding = holdStream(upstream, ['a', 'b', 'c']);
      const first = readLive(ask(a, path, { stream }));
      const held = await holding;
      const second = readLive(ask(b, path, { stream }));
      await eventually('it has joined', async () => (await running(b)) >= 1);
      held.say();
      held.finish();
      await Promise.all([first.ended, second.ended]);
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(second.text).toBe(first.text);
      expect(first.text).toContain('c');
      expect(second.headers.get('x-textgate-replayed')).toBe('true');
      expect(second.headers.get('x-textgate-original-request')).toBe(first.headers.get('x-request-id'));
      expect(calls()).toBe(1);
    });

    test('is replayed by the other one after its end', async () => {
      const { a, b, ask, calls } = await startNodes();
      upstream.play(sayTexts(['Hello ', 'world']));
      const first = await (await ask(a, path, { stream })).text();
      const second = await ask(b, path, { stream });
      expect(second.headers.get('x-textgate-charge')).toBe('0.00');
      expect(await second.text()).toBe(first);
      expect(calls()).toBe(1);
    });
  });

  test('goes on at the other one behind an event, and is another request there with another body', async () => {
    const { a, b, ask } = await startNodes();
    upstream.play(sayTexts(['Hello ', 'world']));
    const first = await (await ask(a, '/v1/chat/completions')).text();
    const frames = first.split('\n\n').filter((frame) => frame !== '');
    const last = /^id: (.*-1)$/m.exec(first)?.[1] ?? '';
    const rest = await ask(b, '/v1/chat/completions', {}, { 'last-event-id': last });
    expect(await rest.text()).toBe(
      frames
        .slice(2)
        .map((frame) => `${frame}\n\n`)
        .join(''),
    );
    expect((await ask(b, '/v1/chat/completions', { max_tokens: 3 })).status).toBe(422);
    expect((await ask(b, '/v1/chat/completions', {}, { 'last-event-id': '00000000-1' })).status).toBe(409);
  });

  test('goes on when its client comes back to the other node', async () => {
    const { a, b, ask, calls } = await startNodes();
    const holding = holdStream(upstream, ['a', 'b', 'c']);
    const leaving = new AbortController();
    const first = readLive(ask(a, '/v1/chat/completions', {}, {}, leaving.signal));
    const held = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it has left', () => first.broken);
    const second = readLive(ask(b, '/v1/chat/completions'));
    await eventually('it has joined', () => second.text.includes('"a"'));
    held.finish();
    await second.ended;
    expect(second.text.startsWith(first.text)).toBe(true);
    expect(second.text).toContain('[DONE]');
    expect([held.isCut(), calls()]).toEqual([false, 1]);
  });

  test('without a name, is joined on the other node by the retry of a library, for a key that joins them', async () => {
    const { a, b, ask, calls } = await startRetries('/v1/responses');
    const holding = holdStream(upstream, ['a', 'b', 'c']);
    const leaving = new AbortController();
    const first = ask(a, 0, leaving.signal);
    const held = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it has left', () => first.broken);
    const second = ask(b, 1);
    await eventually('it has joined', () => second.text.includes('"a"'));
    held.finish();
    await second.ended;
    expect(second.text.startsWith(first.text)).toBe(true);
    expect(second.text).toContain('response.completed');
    expect(calls()).toBe(1);
    upstream.play(sayTexts(['another']));
    await eventually('its end is known to have arrived', async () => {
      const third = ask(b, 1);
      await third.ended;
      return third.text.includes('another');
    });
    expect(calls()).toBe(2);
  });

  test('without a name, is joined once more where the client of the other node has left before its end', async () => {
    const { a, b, ask, calls } = await startRetries('/v1/chat/completions');
    const holding = holdStream(upstream, ['a', 'é', '漢']);
    const [leaving, leavingAgain] = [new AbortController(), new AbortController()];
    const first = ask(a, 0, leaving.signal);
    const held = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    leaving.abort();
    await eventually('it has left', () => first.broken);
    const second = ask(b, 1, leavingAgain.signal);
    await eventually('it has joined', () => second.text.includes('"a"'));
    leavingAgain.abort();
    await eventually('it has left', () => second.broken);
    held.finish();
    const third = ask(b, 2);
    await third.ended;
    expect(third.text).toContain('漢');
    expect(third.text).toContain('[DONE]');
    expect(calls()).toBe(1);
  });

  test('is to be sent again where the process that runs it says nothing', async () => {
    const { a, b, ask, calls } = await startNodes();
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask(a, '/v1/chat/completions'));
    const held = await holding;
    await onServer("UPDATE owners SET address = 'http://127.0.0.1:1'", database.url);
    const refused = await ask(b, '/v1/chat/completions');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, '1']);
    expect(await refused.json()).toMatchObject({ error: { code: 'request_in_progress' } });
    await eventually('it is reached again', async () => {
      const again = await ask(b, '/v1/chat/completions', { stream: true });
      void again.body?.cancel();
      return again.status === 200;
    });
    held.finish();
    await first.ended;
    expect(calls()).toBe(1);
  });

  test.each([
    ['ends before its end', ''],
    ['sends half a line', '{"kind":"ended","settled"'],
    ['sends a line that is none', 'no event\n'],
  ])('is cut off where the process that runs it %s', async (_what, last) => {
    const { a, b, ask } = await startNodes();
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask(a, '/v1/chat/completions'));
    const held = await holding;
    const request = {
      model: 'small',
      stream: true,
      stripped: [],
      includeUsage: false,
      responses: null,
      shownCharge: { usageCost: false, chargeComment: false },
    };
    const events = [
      {
        kind: 'joined',
        requestId: `req_${'1'.repeat(32)}`,
        isReplay: false,
        asked: { request, id: '1'.repeat(32), arrivedAtMs: 0, isNamed: true },
      },
      { kind: 'text', deltas: ['part'] },
    ];
    const asking = Promise.withResolvers<ServerResponse>();
    const owner = createServer((_request, response) => {
      response.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
      asking.resolve(response);
    });
    await once(owner.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void owner.close());
    const { port } = owner.address() as AddressInfo;
    await onServer(`UPDATE owners SET address = 'http://127.0.0.1:${port}'`, database.url);
    const second = readLive(ask(b, '/v1/chat/completions'));
    const asked = await asking.promise;
    // A broken connection takes from `fetch` what it has not read yet.
    await eventually('the text has arrived', () => second.text.includes('"part"'));
    asked.end(last);
    await second.ended;
    expect([second.status, second.broken]).toEqual([200, true]);
    expect(second.text).not.toContain('[DONE]');
    held.finish();
    await first.ended;
  });

  test('of Responses that a silent process may have is a 409, and none that is not there', async () => {
    const { a, b, ask, get } = await startNodes();
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask(a, '/v1/responses'));
    const held = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const id = /"id":"(resp_[0-9a-f]{32})"/.exec(first.text)?.[1] ?? '';
    await onServer("UPDATE owners SET address = 'http://127.0.0.1:1'", database.url);
    const silent = await get(b, `/v1/responses/${id}/cancel`, { method: 'POST' });
    expect([silent.status, silent.headers.get('retry-after')]).toEqual([409, '1']);
    held.finish();
    await first.ended;
  });

  test('is joined on the other one over TLS', async () => {
    const { paths } = makeCertificate(makeTemporaryFolder());
    const { a, b, ask, calls } = await startNodes({ tls: paths });
    expect((await addresses()).every((address) => address.startsWith('https://'))).toBe(true);
    upstream.play(sayTexts(['Hello ', 'world']));
    const first = await (await ask(a, '/v1/responses')).text();
    expect(await (await ask(b, '/v1/responses')).text()).toBe(first);
    expect(calls()).toBe(1);
  });

  test('of Responses is read, gone on with and cancelled on the other node', async () => {
    const { a, b, ask, get } = await startNodes();
    const holding = holdStream(upstream, ['a', 'b']);
    const first = readLive(ask(a, '/v1/responses'));
    await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    const id = /"id":"(resp_[0-9a-f]{32})"/.exec(first.text)?.[1] ?? '';
    expect(await (await get(b, `/v1/responses/${id}`)).json()).toMatchObject({ id, status: 'in_progress' });
    const second = readLive(get(b, `/v1/responses/${id}?stream=true`));
    await eventually('it has joined', () => second.text.includes('"a"'));
    const cancelled = await get(b, `/v1/responses/${id}/cancel`, { method: 'POST' });
    expect(await cancelled.json()).toMatchObject({ id, status: 'cancelled' });
    await Promise.all([first.ended, second.ended]);
    expect(second.text).toBe(first.text);
    expect(second.text).toContain('response.failed');
    expect((await get(b, `/v1/responses/resp_${'0'.repeat(32)}`)).status).toBe(404);
    expect((await get(b, `/v1/responses/resp_${'0'.repeat(32)}?stream=true`)).status).toBe(404);
  });

  test('is not told to who has not the token of the nodes', async () => {
    await startNodes();
    const [address = ''] = (await addresses()).slice(-1);
    const post = (headers: Record<string, string>, body: string, path = '/join') =>
      new Promise<number>((resolve, reject) => {
        const sending = httpRequest(`${address}${path}`, { method: 'POST', headers }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        });
        sending.on('error', reject);
        sending.end(body);
      });
    const known = { authorization: `Bearer ${token}` };
    const question = JSON.stringify({ kind: 'request', keyId: 'key', requestId: 'req' });
    expect(await post({}, question)).toBe(401);
    expect(await post({ authorization: 'Bearer other' }, question)).toBe(401);
    expect(await post(known, '{}')).toBe(400);
    expect(await post(known, 'x'.repeat(5_000))).toBe(400);
    expect(await post(known, question, '/v1/models')).toBe(404);
    expect(await post(known, question)).toBe(200);
  });

  test('is joined across the workers of a gateway, which know each other without a setting', async () => {
    const served = await serveWorkers({ databaseUrl: database.url, upstreamUrl: upstream.url });
    onTestFinished(async () => {
      const pids = served.pids();
      served.server.signal('SIGKILL');
      await allEnded(pids);
    });
    // As soon as they take requests.
    expect(await addresses()).toHaveLength(2);
    const before = upstream.seen.length;
    const holding = holdStream(upstream, ['a', 'b']);
    const ask = () =>
      readLive(
        fetch(`${served.url}/v1/responses`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${served.key}`,
            'content-type': 'application/json',
            'idempotency-key': 'once',
          },
          body: JSON.stringify({ ...bodies['/v1/responses'], stream: true }),
        }),
      );
    const first = ask();
    const held = await holding;
    await eventually('it has text', () => first.text.includes('"a"'));
    // Connections go to the workers in turn.
    const others = [ask(), ask(), ask()];
    await eventually('all have joined', () => others.every(({ text }) => text.includes('"a"')));
    held.finish();
    await Promise.all([first, ...others].map(({ ended }) => ended));
    expect(new Set(others.map(({ text }) => text))).toEqual(new Set([first.text]));
    expect(upstream.seen.length - before).toBe(1);
  });
});
