import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createMemoryLimiter } from '../../src/coordination/memory-limiter.ts';
import { createTurnQueue } from '../../src/domain/limits/turn-queue.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import { createOwnKeyRoutes } from '../../src/http/own-key-routes.ts';
import type { OwnKeyPorts } from '../../src/http/own-key-routes.ts';
import { prepareAnswers } from '../../src/http/answers/prepare-answers.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

async function start(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Reads a page of a key's own record. */
async function read({ url, key }: TestGateway, path: string, secret = key) {
  const answer = await fetch(`${url}/v1/key${path}`, { headers: { authorization: `Bearer ${secret}` } });
  // eslint-disable-next-line typescript/no-explicit-any -- what a test reads is checked by what it expects
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as any };
}

/** The routes of a key's holder, over a store that answers when the test releases it. */
async function serveSlowRecords(): Promise<{
  readonly url: string;
  readonly clock: FakeClock;
  readonly finish: () => void;
}> {
  const clock = createFakeClock();
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const key = { id: 'key_a', allowFrom: null } as ApiKey;
  const holder = createOwnKeyRoutes({
    readLimiter: createMemoryLimiter(clock),
    readTurns: createTurnQueue(clock),
    keys: { find: () => key },
    listRecords: () => finished.then(() => ({ records: [], next: null })),
  } as unknown as OwnKeyPorts);
  const app = express().use(
    prepareAnswers(
      randomUUID,
      () => {},
      () => false,
    ),
    holder,
  );
  const server = app.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, clock, finish };
}

/** Reads what is refused: advances the clock by the second for which the refusal is held back, and not sooner. */
async function refusedRead(gateway: TestGateway, clock: FakeClock, path: string) {
  const schedule = vi.spyOn(clock, 'schedule');
  let isAnswered = false;
  const answer = read(gateway, path).finally(() => (isAnswered = true));
  const isHeld = (): boolean => schedule.mock.calls.some(([delayMs]) => delayMs === 1_000);
  await eventually('the refusal is held back', isHeld);
  expect(isAnswered).toBe(false);
  // Something else of the gateway may wait for a second, too, and have begun before.
  await eventually('the refusal is answered', () => {
    if (!isAnswered && isHeld()) {
      schedule.mockClear();
      clock.advance(1_000);
    }
    return isAnswered;
  });
  schedule.mockRestore();
  return answer;
}

describe('a key’s reads of its own record', () => {
  test('are limited to two at once, with an error that names the limit', async () => {
    const { url, clock, finish } = await serveSlowRecords();
    const readSlow = (): Promise<Response> =>
      fetch(`${url}/v1/key/requests`, { headers: { authorization: 'Bearer x' } });
    const schedule = vi.spyOn(clock, 'schedule');
    const three = [readSlow(), readSlow(), readSlow()];
    // The other reads wait for their records, the refusal for its second.
    await eventually('the refusal is held back', () =>
      schedule.mock.calls.some(([delayMs]) => delayMs === 1_000),
    );
    clock.advance(1_000);
    const refused = await Promise.race(three);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'concurrency_limit_exceeded',
        message: expect.stringContaining('2 reads of its own record in progress at once') as string,
        limit: { source: 'key', kind: 'concurrency', limit: 2, in_flight: 2, retry_after_ms: 1_000 },
      },
    });
    // The first read took a second of the clock, and is followed by a rest.
    schedule.mockClear();
    finish();
    await eventually('the rest begins', () => schedule.mock.calls.length > 0);
    clock.advance(1_000);
    const statuses = (await Promise.all(three)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 429]);
    expect((await readSlow()).status).toBe(200);
  });

  test('are limited to sixty per minute over all paths, apart from the limits of requests', async () => {
    const clock = createFakeClock();
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.play(sayTexts(['x']));
    const gateway = await start({ clock, upstreamUrl: upstream.url, limits: { requestsPerMinute: 2 } });
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    const [{ request_id: id }] = (await read(gateway, '/requests')).body.data;
    const paths = ['', '/requests', `/requests/${id}`];
    for (let count = 1; count < 60; count++)
      expect((await read(gateway, paths[count % 3] ?? '')).status).toBe(200);
    for (const path of paths) {
      const refused = await refusedRead(gateway, clock, path);
      expect(refused.status).toBe(429);
      expect(refused.body.error).toMatchObject({
        code: 'rate_limit_exceeded',
        limit: { source: 'key', kind: 'rate', limit: 60 },
      });
    }
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    const { secret } = await gateway.gateway.createKey('other');
    expect((await read(gateway, '', secret)).status).toBe(200);
    clock.advance(60_000);
    expect((await read(gateway, '')).status).toBe(200);
  });

  test('wait for their turn, and are not refused, while other keys read theirs', async () => {
    const gateway = await start();
    const issued = await Promise.all(Array.from({ length: 12 }, () => gateway.gateway.createKey('other')));
    const secrets = issued.flatMap(({ secret }) => [secret, secret]);
    const answers = await Promise.all(secrets.map((secret) => read(gateway, '/requests?limit=200', secret)));
    expect(answers.map(({ status }) => status)).toEqual(secrets.map(() => 200));
  });

  test('do not limit cancellation, which is never refused', async () => {
    const clock = createFakeClock();
    const gateway = await start({ clock });
    for (let count = 0; count < 60; count++) await read(gateway, '');
    expect((await refusedRead(gateway, clock, '')).status).toBe(429);
    const cancelled = await gateway.post('/v1/key/requests/req_none/cancel', {});
    expect(await cancelled.json()).toMatchObject({ error: { code: 'request_not_found' } });
  });
});

describe('an unknown cursor', () => {
  const refused = { code: 'invalid_value', param: 'before' };

  test('is refused in every list, because an empty page would look like the end', async () => {
    const gateway = await start();
    for (const list of ['/records', '/records?model=small', '/keys']) {
      const query = `${list}${list.includes('?') ? '&' : '?'}before=unknown`;
      expect(await askAdmin(gateway, 'GET', query)).toMatchObject({ status: 400, body: { error: refused } });
    }
    expect(await read(gateway, '/requests?before=unknown')).toMatchObject({
      status: 400,
      body: { error: refused },
    });
  });

  test('is refused, too, when it is another key’s request, whose time it would reveal', async () => {
    const gateway = await start();
    await gateway.post('/v1/chat/completions', body);
    const [{ request_id: id }] = (await read(gateway, '/requests')).body.data;
    const { secret } = await gateway.gateway.createKey('other');
    expect((await read(gateway, `/requests?before=${id}`)).status).toBe(200);
    expect(await read(gateway, `/requests?before=${id}`, secret)).toMatchObject({
      status: 400,
      body: { error: refused },
    });
  });
});
