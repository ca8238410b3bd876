import { beforeEach, describe, expect, test } from 'vitest';
import { sessionMs } from '../../src/http/admin/access.ts';
import { logIn } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const clock = createFakeClock();
const { upstream, gateway } = await openStage({
  clock,
  limits: { concurrency: 100 },
  timeouts: { firstByte: '48h', idle: '48h', total: '48h' },
});
const { host, origin } = new URL(gateway.adminUrl);
const own = (await gateway.gateway.keys.list()).data[0]?.id ?? '';

const chat = { model: 'small', messages: [{ role: 'user', content: 'hi' }], stream: true };
const tryOut = { target: `/admin/try/chat/completions?key=${own}`, body: chat };
const doctor = { target: '/admin/upstreams/local/doctor', body: {} };

/** Sends a request as the console's page does, with a cookie, or with another proof. */
function post({ target, body }: { target: string; body: object }, ...proof: readonly string[]): RawSocket {
  const client = openRaw(gateway.adminUrl);
  const text = JSON.stringify(body);
  const head = [
    `POST ${target} HTTP/1.1`,
    `Host: ${host}`,
    `Origin: ${origin}`,
    'Content-Type: application/json',
    `Content-Length: ${text.length}`,
    ...proof,
  ];
  client.socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  return client;
}

async function logOut(cookie: string): Promise<void> {
  const headers = { cookie, origin };
  expect((await fetch(`${gateway.adminUrl}/console/session`, { method: 'DELETE', headers })).status).toBe(
    204,
  );
}

beforeEach(() => upstream.play((response) => void sendStream(response, chatFrames(['one']).slice(0, 2))));

describe.each([
  ['a try-out', tryOut],
  ['a doctor run', doctor],
])('%s', (_, request) => {
  /** Begins it, and waits until the upstream has been called. */
  const begin = async (...proof: readonly string[]): Promise<RawSocket> => {
    const before = upstream.running;
    const client = post(request, ...proof);
    await eventually('the upstream is called', () => upstream.running > before);
    return client;
  };

  test('ends with the logout of its session, and one of another session goes on', async () => {
    const [mine, other] = await Promise.all([1, 2].map(() => logIn(gateway, gateway.adminToken)));
    const client = await begin(`Cookie: ${mine?.cookie ?? ''}`);
    const running = upstream.running;
    await logOut(other?.cookie ?? '');
    expect([client.isClosed(), upstream.running]).toEqual([false, running]);
    await logOut(mine?.cookie ?? '');
    await eventually('the client is cut off', client.isClosed);
    await eventually('the upstream is cut off', () => upstream.running < running);
  });
});

test('a try-out ends when the time of its session is over', async () => {
  const { cookie } = await logIn(gateway, gateway.adminToken);
  const client = post(tryOut, `Cookie: ${cookie}`);
  await eventually('the first text is there', () => client.text().includes('one'));
  clock.advance(sessionMs - 2_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.isClosed()).toBe(false);
  clock.advance(2_000);
  await eventually('the client is cut off', client.isClosed);
  await eventually('the upstream is cut off', () => upstream.running === 0);
});

test('a try-out with a token has no session to end with', async () => {
  const { cookie } = await logIn(gateway, gateway.adminToken);
  const client = post(tryOut, `Authorization: Bearer ${gateway.adminToken}`, `Cookie: ${cookie}`);
  await eventually('the first text is there', () => client.text().includes('one'));
  await logOut(cookie);
  clock.advance(sessionMs);
  await new Promise((resolve) => setImmediate(resolve));
  expect([client.isClosed(), upstream.running]).toEqual([false, 1]);
});
