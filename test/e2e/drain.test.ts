import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { composeGateway } from '../../src/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { readRecords } from '../support/records.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const frames = chatFrames(['one ', 'two']);
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], stream: true };

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  clock = createFakeClock();
  upstream = await startUpstream();
  gateway = await startGateway({ upstreamUrl: upstream.url, clock });
});
afterEach(() => upstream.close());

/** Opens a stream that has delivered its first text and waits for the rest. */
async function openStream() {
  const upstreamSide = Promise.withResolvers<ServerResponse>();
  upstream.play((response) => upstreamSide.resolve(sendStream(response, frames.slice(0, 2))));
  const response = await gateway.post('/v1/chat/completions', body);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader?.read())?.value).toContain('one ');
  return { upstreamSide: await upstreamSide.promise, reader };
}

/** A gateway that goes on taking requests for an hour after a signal. */
function composeDelayed(storage = 'sqlite::memory:') {
  const delayed = composeGateway(
    checkConfig(
      {
        server: { port: 0, shutdownDelay: '1h' },
        admin: { port: 0 },
        storage: { url: storage },
        limits: { concurrency: 10 },
        upstreams: { local: { url: upstream.url } },
        models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
      },
      'the config',
    ),
    { clock, logLevel: 'silent' },
  );
  onTestFinished(() => delayed.close());
  return delayed;
}

describe('the delay before closing', () => {
  test('keeps the listeners open while readiness fails, and has each answer close its connection', async () => {
    const delayed = composeDelayed();
    expect(delayed.leave().delayMs).toBe(0);
    const { url, adminUrl } = await delayed.listen();
    const secret = await delayed.createFirstKey();
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const ask = () =>
      fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });

    upstream.play(sayTexts(['Hello']));
    const { delayMs, over } = delayed.leave();
    let isOver = false;
    void over.then(() => (isOver = true));
    expect(delayMs).toBe(3_600_000);
    const ready = await fetch(`${adminUrl}/readyz`);
    expect([ready.status, ((await ready.json()) as { reason: string }).reason]).toEqual([
      503,
      'shutting down',
    ]);
    expect((await fetch(`${adminUrl}/healthz`)).status).toBe(200);
    const answer = await ask();
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close']);
    expect(await answer.text()).toContain('[DONE]');
    clock.advance(3_599_999);
    await setImmediate();
    expect(isOver).toBe(false);
    clock.advance(1);
    await over;
    await delayed.close();
    await expect(ask()).rejects.toThrow('fetch failed');
  });

  test.each([
    ['in one piece', (requests: readonly string[]) => [requests.join('')]],
    ['while the first is answered', (requests: readonly string[]) => requests],
  ])(
    'has the first of several pipelined requests answered, and none run whose answer would be lost (%s)',
    async (_name, pieces) => {
      const storage = join(makeTemporaryFolder(), 'textgate.db');
      const delayed = composeDelayed(`sqlite:${storage}`);
      const { url } = await delayed.listen();
      const secret = (await delayed.createFirstKey()) ?? '';
      const goOn = Promise.withResolvers<void>();
      upstream.play(async (response, request) => {
        await goOn.promise;
        await sayTexts(['Hello'])(response, request);
      });
      delayed.leave();
      const client = openRaw(url);
      // The last body is larger than what is read of a request that is not run.
      const long = { ...body, messages: [{ role: 'user', content: 'x'.repeat(400_000) }] };
      const requests = [body, body, long].map((each) => rawPost('/v1/chat/completions', secret, each));
      for (const piece of pieces(requests)) {
        client.socket.write(piece);
        await eventually('the first request is sent', () => upstream.seen.length > 0);
      }
      for (let round = 0; round < 20; round++) await (await fetch(`${url}/v1/models`)).text();
      goOn.resolve();
      await eventually('the connection is closed', client.isClosed);
      await eventually('the answer is whole', () => client.text().endsWith('[DONE]\n\n\r\n0\r\n\r\n'));
      expect(client.text().split('HTTP/1.1 ')).toHaveLength(2);
      await delayed.close();
      expect(upstream.seen).toHaveLength(1);
      expect(readRecords(storage)).toMatchObject([{ outcome: 'completed' }]);
    },
  );
});

describe('closing', () => {
  test('a draining gateway fails readiness, refuses new requests, and completes a running stream', async () => {
    const { upstreamSide, reader } = await openStream();
    const closed = gateway.close();

    const ready = await fetch(`${gateway.adminUrl}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ status: 'not ready', reason: 'draining' });
    await expect(gateway.post('/v1/chat/completions', body)).rejects.toThrow('fetch failed');

    upstreamSide.end(frames.slice(2).join(''));
    let rest = '';
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      rest += part.value;
    expect(rest).toMatch(/two[^]*data: \[DONE\]\n\n$/);
    await closed;
  });

  test('a draining gateway closes idle connections, and sends an answer to its end that its client reads slowly', async () => {
    const idle = openRaw(gateway.url);
    idle.socket.write('GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually('it is answered', () => idle.text().includes('invalid_api_key'));
    // More than the buffers of the system take.
    const length = 12_000_000;
    upstream.play(sayTexts(['y'.repeat(length)]));
    const slow = openRaw(gateway.url, { paused: true });
    slow.socket.write(rawPost('/v1/chat/completions', gateway.key, { ...body, stream: false }));
    const metrics = async () => (await fetch(`${gateway.adminUrl}/metrics`)).text();
    await eventually('it is charged', async () =>
      /^textgate_requests_total\{.*status="200"\} 1$/m.test(await metrics()),
    );
    const closed = gateway.close();
    await eventually('the idle connection is closed', idle.isClosed);
    slow.socket.resume();
    await eventually('the other one is closed', slow.isClosed);
    expect(slow.text().length).toBeGreaterThan(length);
    await closed;
  });

  test('a draining gateway ends a stream that outlasts the drain time with an error, never as complete', async () => {
    const { reader } = await openStream();
    const closed = gateway.gateway.close();
    clock.advance(25_000);
    let rest = '';
    const readAll = async (): Promise<void> => {
      for (;;) rest += (await reader?.read())?.value ?? '';
    };
    await expect(readAll()).rejects.toThrow('terminated');
    expect(rest).toContain('"code":"draining"');
    expect(rest).not.toContain('[DONE]');
    await closed;
  });

  test('a draining gateway refuses new requests on open connections', async () => {
    const { upstreamSide, reader } = await openStream();
    const closed = gateway.gateway.close();
    const { default: express } = await import('express');
    const app = express().use(gateway.gateway.router);
    const server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const refused = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ error: { code: 'draining' } });
    server.close();
    upstreamSide.end(frames.slice(2).join(''));
    await reader?.read();
    await closed;
  });

  test('a draining gateway names the requests that do not end although they are told to', async () => {
    const lines: string[] = [];
    const logDestination = { write: (line: string) => void lines.push(line) };
    const { url, key, ...other } = await startGateway({ upstreamUrl: upstream.url, clock, logDestination });
    const client = openRaw(url);
    const whole = rawPost('/v1/chat/completions', key, body);
    // Its body never comes to its end, which nothing waits for but its own time limit.
    client.socket.write(whole.slice(0, -5));
    await eventually('it is in progress', async () => (await other.gateway.inFlight()).data.length > 0);
    const closed = other.gateway.close();
    // The drain time, and what requests may take after it that were told to end.
    for (const seconds of [25, 5]) {
      await setImmediate();
      clock.advance(seconds * 1_000);
    }
    await closed;
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({
        msg: 'requests did not end in time: their connections are cut',
        count: 1,
        reason: expect.stringMatching(/^req_[0-9a-f]+ \(chat\)$/) as string,
      }),
    );
  });
});
