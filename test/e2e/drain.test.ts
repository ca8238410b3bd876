import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
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
});
