import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage({ limits: { concurrency: 100 } });
const { host } = new URL(gateway.adminUrl);
const own = (await gateway.gateway.keys.list()).data[0]?.id ?? '';
const chat = { model: 'small', messages: [{ role: 'user', content: 'hi' }], stream: true };

/** How many connections the listener takes, and the parts of them that are kept. */
const connections = 64;
const mostLong = 16;
const mostUnproven = 16;
const most = 56;

function send(text: string): RawSocket {
  const client = openRaw(gateway.adminUrl);
  client.socket.write(text.replace('Host: x', `Host: ${host}`));
  return client;
}

const status = (path: string): Promise<number> =>
  fetch(`${gateway.adminUrl}${path}`, {
    headers: { authorization: `Bearer ${gateway.adminToken}`, connection: 'close' },
  }).then(async (answer) => {
    await answer.text();
    return answer.status;
  });

test('one token can fill the operators’ listener neither for others nor for probes', async () => {
  upstream.play((response) => void sendStream(response, chatFrames(['one']).slice(0, 2)));
  const tryOut = rawPost(`/admin/try/chat/completions?key=${own}`, gateway.adminToken, chat);
  const long = Array.from({ length: mostLong + 1 }, () => send(tryOut));
  await eventually('one is refused', () => long.some(({ isClosed }) => isClosed()));
  await eventually('all others run', () => upstream.running === mostLong);
  const refused = long.filter(({ isClosed }) => isClosed()).map(({ text }) => text());
  expect(refused).toHaveLength(1);
  expect(refused[0]).toMatch(
    /^HTTP\/1\.1 503 [^]*"16 try-outs, doctor runs, backups and archives are in progress/,
  );
  expect(refused[0]).toMatch(/\r\nconnection: close\r\n/i);
  // What is short for others goes on.
  expect(await status('/admin/keys')).toBe(200);
  // Heads whose bodies never come keep their connections busy, too.
  const stuck = rawPost('/admin/keys', gateway.adminToken, {}).replace(
    /Content-Length: \d+/,
    'Content-Length: 9',
  );
  const clients = Array.from({ length: connections - mostLong }, () => send(stuck));
  await eventually('the rest is refused', () => clients.filter(({ isClosed }) => isClosed()).length >= 8);
  expect(clients.filter(({ isClosed }) => !isClosed())).toHaveLength(most - mostLong);
  expect(await status('/admin/keys')).toBe(503);
  expect([await status('/healthz'), await status('/readyz'), await status('/metrics')]).toEqual([
    200, 200, 200,
  ]);
  for (const { socket } of [...long, ...clients]) socket.destroy();
  await eventually('there is room again', async () => (await status('/admin/keys')) === 200);
  await eventually('the try-outs have ended', () => upstream.running === 0);
  const next = send(tryOut);
  await eventually('it is answered', () => next.text() !== '');
  expect(next.text()).toMatch(/^HTTP\/1\.1 200 /);
});

test('logins whose bodies never come keep neither operators nor sessions out', async () => {
  const login = (): Promise<Response> =>
    fetch(`${gateway.adminUrl}/console/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ token: gateway.adminToken }),
    });
  const cookie = (await login()).headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  const head = `POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 40\r\n`;
  // A wrong token and a wrong cookie prove nothing.
  const heads = [head, `${head}Authorization: Bearer wrong\r\n`, `${head}Cookie: ${cookie}x\r\n`];
  const clients = Array.from({ length: most }, (_, index) => send(`${heads[index % heads.length]}\r\n`));
  await eventually('most are refused', () => clients.filter(({ isClosed }) => isClosed()).length >= 40);
  const refused = clients.filter(({ isClosed }) => isClosed());
  expect(refused).toHaveLength(most - mostUnproven);
  for (const { text } of refused)
    expect(text()).toMatch(
      /^HTTP\/1\.1 503 [^]*"16 requests without a right token or session, as of logins,/,
    );
  expect((await login()).status).toBe(503);
  expect(await status('/admin/keys')).toBe(200);
  const withSession = await fetch(`${gateway.adminUrl}/admin/keys`, { headers: { cookie } });
  expect(withSession.status).toBe(200);
  expect(await withSession.text()).toContain('"object":"list"');
  for (const { socket } of clients) socket.destroy();
  await eventually('one can log in again', async () => (await login()).status === 200);
});
