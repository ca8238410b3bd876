import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const messages = [{ role: 'user', content: 'x' }];

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let running: LiveAnswer;
let sending: ServerResponse;
let keyId: string;
beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    passthrough: [{ path: '/tokenize', upstream: 'local' }],
    limits: { concurrency: 1, queueWait: '60s' },
  });
  ({
    body: {
      data: [{ id: keyId }],
    },
  } = await askAdmin(gateway, 'GET', '/keys'));
  const started = Promise.withResolvers<ServerResponse>();
  upstream.play((response) => started.resolve(sendStream(response, chatFrames(['one']).slice(0, 2))));
  running = readLive(gateway.post('/v1/chat/completions', { model: 'small', stream: true, messages }));
  sending = await started.promise;
  upstream.play((response) => void response.writeHead(500).end());
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

/** Sends a request while the key's only slot is taken, and resolves when the request waits for it. */
async function wait(path: '/v1/chat/completions' | '/tokenize'): Promise<LiveAnswer> {
  const body = path === '/tokenize' ? {} : { model: 'small', messages };
  const waiting = readLive(gateway.post(path, body));
  await eventually('the request waits', async () => {
    const { body: shown } = await askAdmin(gateway, 'GET', '/in-flight');
    return (shown as { data: readonly object[] }).data.length === 2;
  });
  return waiting;
}

async function endRunning(): Promise<void> {
  sending.end(chatFrames([]).slice(1).join(''));
  await running.ended;
}

describe.each(['/v1/chat/completions', '/tokenize'] as const)(
  'a request for %s that waits for a slot',
  (path) => {
    test('is refused at once when the gateway starts to drain, while the running request completes', async () => {
      const waiting = await wait(path);
      const closed = gateway.gateway.close();
      await waiting.ended;
      expect(waiting.status).toBe(503);
      expect(JSON.parse(waiting.text)).toMatchObject({ error: { code: 'draining' } });
      await endRunning();
      expect(running.text).toContain('[DONE]');
      await closed;
      expect(upstream.seen).toHaveLength(1);
    });

    test('is refused when its key has been revoked in the meantime, and frees the slot', async () => {
      const waiting = await wait(path);
      await askAdmin(gateway, 'DELETE', `/keys/${keyId}`);
      await endRunning();
      await waiting.ended;
      expect(waiting.status).toBe(401);
      expect(JSON.parse(waiting.text)).toMatchObject({ error: { code: 'invalid_api_key' } });
      expect(upstream.seen).toHaveLength(1);
      expect((await askAdmin(gateway, 'GET', `/keys/${keyId}`)).body).toMatchObject({ in_flight: 0 });
    });

    test('runs at once when its key may have more requests at a time', async () => {
      const waiting = await wait(path);
      await askAdmin(gateway, 'PATCH', `/keys/${keyId}`, { concurrency: 2, requestsPerMinute: 77 });
      await waiting.ended;
      // What is passed on has no such header.
      const told = path === '/tokenize' ? null : '77';
      expect(waiting.headers.get('x-ratelimit-limit-requests')).toBe(told);
      expect(upstream.seen).toHaveLength(2);
      await endRunning();
    });

    test('runs with its key’s permissions after the wait', async () => {
      const waiting = await wait(path);
      await askAdmin(gateway, 'PATCH', `/keys/${keyId}`, {
        models: [path === '/tokenize' ? 'small' : '/tokenize'],
      });
      await endRunning();
      await waiting.ended;
      expect(waiting.status).toBe(403);
      expect(JSON.parse(waiting.text)).toMatchObject({ error: { code: 'model_not_allowed' } });
      expect(upstream.seen).toHaveLength(1);
    });
  },
);
