import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { chatFrames, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

/** How long an upstream's call may go on after its client has left, in milliseconds; a busy machine needs some of it. */
const withinMs = 5_000;

const message = { role: 'user', content: 'x' };
const bodies = {
  chat: { model: 'small', messages: [message] },
  responses: { model: 'small', input: 'x' },
};
const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' };

/** What the upstreams have seen: when the socket of each call was closed, and how it is answered. */
let upstreams: readonly [ScriptedUpstream, ScriptedUpstream];
let closedMs: number[];
async function openUpstreams(): Promise<void> {
  closedMs = [];
  upstreams = [await startUpstream(), await startUpstream()];
  for (const upstream of upstreams) answerWith(upstream, () => {});
}
async function closeUpstreams(): Promise<void> {
  await Promise.all(upstreams.map((upstream) => upstream.close()));
}

function answerWith(upstream: ScriptedUpstream, answer: (response: ServerResponse) => void): void {
  upstream.play((response) => {
    response.on('close', () => closedMs.push(performance.now()));
    answer(response);
  });
}

const seen = () => upstreams.map((upstream) => upstream.seen.length).join(' ');
const isRunning = () => upstreams.some((upstream) => upstream.running > 0);
const begin = (response: ServerResponse): void => void sendStream(response, chatFrames(['a']).slice(0, 2));

/** A client's request, which it leaves. */
interface Leaver {
  readonly answer: Promise<Response | null>;
  leave(): number;
}

function send(gateway: TestGateway, path: string, body: object): Leaver {
  const leaving = new AbortController();
  const answer = gateway.post(path, body, { signal: leaving.signal }).catch(() => null);
  return {
    answer,
    leave: () => {
      leaving.abort();
      return performance.now();
    },
  };
}

/** Waits until the calls have ended at the upstream's socket, and the request at the gateway. */
async function ended(gateway: TestGateway, name: string, leftMs: number): Promise<void> {
  await eventually('the calls are stopped', () => !isRunning(), withinMs);
  const tookMs = closedMs.length === 0 ? 0 : Math.max(...closedMs) - leftMs;
  if (process.env['SHOW_TIMES'] !== undefined) process.stdout.write(`${name}: ${tookMs.toFixed(1)} ms\n`);
  await eventually('no request is in progress', async () => {
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    return [...metrics.matchAll(/^textgate_requests_in_flight\{.*\} (\d+)$/gm)].every(
      ([, count]) => count === '0',
    );
  });
}

const routes = [
  { upstream: 'first', model: 'm' },
  { upstream: 'second', model: 'm' },
];

/** What becomes of requests whose clients leave, on one engine: without a function that makes a database, on SQLite. */
export function describeLeavingClients(createDatabase: (() => Promise<TestDatabase>) | null): void {
  beforeEach(openUpstreams);
  afterEach(closeUpstreams);

  const engine = createDatabase === null ? 'SQLite' : 'PostgreSQL';
  let database: TestDatabase | null = null;
  let gateway: TestGateway;
  beforeAll(async () => {
    database = (await createDatabase?.()) ?? null;
  });
  afterEach(() => gateway.close());
  afterAll(() => database?.drop());

  async function open(options: TestGatewayOptions = {}, limits: object = {}): Promise<void> {
    const [first, second] = upstreams.map(({ url }) => ({ url, ...limits }));
    if (first === undefined || second === undefined) throw new Error('there are two');
    const stored = database === null ? {} : { databaseUrl: database.url, spool: makeTemporaryFolder() };
    const settings = { upstreams: { first, second }, routes, limits: { concurrency: 20 }, ...stored };
    gateway = await startGateway({ ...settings, ...options });
  }

  const asked = (['chat', 'responses'] as const).flatMap((protocol) =>
    [false, true].map((stream) => [protocol, stream ? 'a stream' : 'a whole answer', stream] as const),
  );
  test.each(asked)('stops the call of %s while %s is awaited', async (protocol, name, stream) => {
    await open();
    const leaver = send(gateway, paths[protocol], { ...bodies[protocol], stream });
    await eventually('the upstream is asked', () => upstreams[0].seen.length === 1);
    await ended(gateway, `${engine}, ${protocol}, ${name} awaited`, leaver.leave());
    expect(seen()).toBe('1 0');
  });

  test.each(['chat', 'responses'] as const)(
    'stops the call of %s in the middle of a stream',
    async (protocol) => {
      await open();
      answerWith(upstreams[0], begin);
      const leaver = send(gateway, paths[protocol], { ...bodies[protocol], stream: true });
      await (await leaver.answer)?.body?.getReader().read();
      await ended(gateway, `${engine}, ${protocol}, in a stream`, leaver.leave());
      expect(seen()).toBe('1 0');
    },
  );

  test('stops the call of a whole answer that has begun', async () => {
    await open();
    answerWith(upstreams[0], (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"choices":[');
    });
    const leaver = send(gateway, paths.chat, bodies.chat);
    await eventually('the upstream is asked', () => upstreams[0].seen.length === 1);
    await ended(gateway, `${engine}, in a whole answer`, leaver.leave());
    expect(seen()).toBe('1 0');
  });

  test.each(['before', 'with'])(
    'stops what follows a failed attempt if it leaves %s the failure',
    async (when) => {
      await open();
      let leftMs = 0;
      const leaver: { current: Leaver | null } = { current: null };
      answerWith(upstreams[0], (response) => {
        if (when === 'before') leftMs = leaver.current?.leave() ?? 0;
        sendJson(response, 500, '{}');
        if (when === 'with') leftMs = leaver.current?.leave() ?? 0;
      });
      leaver.current = send(gateway, paths.chat, bodies.chat);
      await eventually('the upstream is asked', () => upstreams[0].seen.length === 1);
      await ended(gateway, `${engine}, ${when} a failure`, leftMs);
    },
  );

  test('stops the second attempt', async () => {
    await open();
    answerWith(upstreams[0], (response) => sendJson(response, 500, '{}'));
    const leaver = send(gateway, paths.chat, bodies.chat);
    await eventually('the second is asked', () => upstreams[1].seen.length === 1);
    await ended(gateway, `${engine}, second attempt`, leaver.leave());
    expect(seen()).toBe('1 1');
  });

  test('stops both calls of a hedge', async () => {
    await open({ settings: { hedge: { after: '10ms', budget: '100%' } } });
    const leaver = send(gateway, paths.chat, { ...bodies.chat, stream: true });
    await eventually('both are asked', () => seen() === '1 1');
    await ended(gateway, `${engine}, hedge`, leaver.leave());
    expect(seen()).toBe('1 1');
  });

  test('stops a call that is passed on, awaited or in its body', async () => {
    await open({ passthrough: [{ path: '/tokenize', upstream: 'first', free: true }] });
    const awaiting = send(gateway, '/tokenize', {});
    await eventually('the upstream is asked', () => upstreams[0].seen.length === 1);
    await ended(gateway, `${engine}, passthrough awaited`, awaiting.leave());
    closedMs = [];
    answerWith(upstreams[0], (response) => void response.writeHead(200).write('a'));
    const reading = send(gateway, '/tokenize', {});
    await (await reading.answer)?.body?.getReader().read();
    await ended(gateway, `${engine}, passthrough in its body`, reading.leave());
    expect(seen()).toBe('2 0');
  });

  test('while it waits for a permit is never sent, and the call before it goes on', async () => {
    await open({ routes: routes.slice(0, 1) }, { maxInFlight: 1, queueWait: '30s' });
    const first = send(gateway, paths.chat, bodies.chat);
    await eventually('the upstream is asked', () => upstreams[0].seen.length === 1);
    const waiting = send(gateway, paths.chat, bodies.chat);
    await eventually('one waits', async () =>
      /^textgate_upstream_waiting\{.*\} 1$/m.test(await (await fetch(`${gateway.adminUrl}/metrics`)).text()),
    );
    waiting.leave();
    await waiting.answer;
    await eventually('none waits', async () =>
      /^textgate_upstream_waiting\{.*\} 0$/m.test(await (await fetch(`${gateway.adminUrl}/metrics`)).text()),
    );
    expect(upstreams[0].running).toBe(1);
    await ended(gateway, `${engine}, the call before one that waits`, first.leave());
    expect(seen()).toBe('1 0');
  });

  test('stops its call while lists of its key are read', async () => {
    await open();
    answerWith(upstreams[0], begin);
    const leaver = send(gateway, paths.chat, { ...bodies.chat, stream: true });
    await (await leaver.answer)?.body?.getReader().read();
    const headers = { authorization: `Bearer ${gateway.key}` };
    const lists = Array.from({ length: 10 }, async () =>
      (await fetch(`${gateway.url}/v1/key/requests`, { headers })).text(),
    );
    await ended(gateway, `${engine}, while lists are read`, leaver.leave());
    await Promise.all(lists);
    expect(seen()).toBe('1 0');
  });
}
