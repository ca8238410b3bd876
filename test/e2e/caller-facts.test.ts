import { describe, expect, onTestFinished, test } from 'vitest';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openRaw } from '../support/raw-socket.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const chat = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

async function start(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

describe('a wrong key', () => {
  test('gets one answer, whether it is missing, malformed, unknown, revoked, expired or replaced', async () => {
    const clock = createFakeClock();
    const gateway = await start({ clock });
    const { createKey, keys } = gateway.gateway;
    const [revoked, expired, replaced] = [
      await createKey('revoked'),
      await createKey('expired', { expiresAt: clock.now() + 1_000 }),
      await createKey('replaced'),
    ];
    const once = { authorization: `Bearer ${replaced.secret}` };
    expect((await fetch(`${gateway.url}/v1/models`, { headers: once })).status).toBe(200);
    await keys.revoke(revoked.key.id);
    await keys.rotate(replaced.key.id, {});
    clock.advance(2_000);
    const { secret: unknown } = mintKey(Buffer.alloc(44, 'a key that was never issued'));
    const credentials = [
      null,
      'Bearer',
      'Basic c2s6',
      'Bearer sk-other',
      `Bearer ${unknown}`,
      `Bearer ${unknown.slice(0, -1)}x`,
      `Bearer ${revoked.secret}`,
      `Bearer ${expired.secret}`,
      `Bearer ${replaced.secret}`,
    ];
    const answers = new Set<string>();
    for (const authorization of credentials) {
      const response = await fetch(gateway.url + chat, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(authorization === null ? {} : { authorization }),
        },
        body: JSON.stringify(body),
      });
      const names = [...response.headers.keys()].toSorted().join();
      answers.add(`${response.status} ${names} ${await response.text()}`);
    }
    expect([...answers]).toEqual([expect.stringMatching(/^401 .*"code":"invalid_api_key"/)]);
  });

  test.each([
    ['Authorization', (good: string) => [`authorization: Bearer ${good}`, 'AUTHORIZATION: Bearer x']],
    [
      'Authorization of a revoked key',
      (good: string) => ['Authorization: Bearer x', `authorization: Bearer ${good}`],
    ],
    [
      'Content-Type',
      (good: string) => [`Authorization: Bearer ${good}`, 'content-type: a/b', 'Content-Type: a/b'],
    ],
  ])('beside a good one is refused, and so is any header sent twice: %s', async (_name, headersOf) => {
    const gateway = await start();
    const client = openRaw(gateway.url);
    client.socket.write(
      ['GET /v1/models HTTP/1.1', 'Host: x', ...headersOf(gateway.key), '', ''].join('\r\n'),
    );
    await eventually('it is refused', () => client.text().includes('"code":"duplicate_header"'));
    expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

test('the port for clients has none of the operators’ paths, with the admin token or a key', async () => {
  const gateway = await start();
  const paths = ['/metrics', '/docs/', '/admin', '/admin/keys', '/admin/records', '/admin/ledger'];
  for (const token of [gateway.adminToken, gateway.key])
    for (const path of paths) {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(gateway.url + path, { headers });
      expect([path, answer.status]).toEqual([path, 404]);
      expect(await answer.json()).toMatchObject({ error: { code: 'unknown_url' } });
    }
});

/** Texts that break lines, fields and terminals where they are not escaped. */
const naughty = [
  '"}\n{"level":60,"msg":"forged"}',
  '\u2028\u2029',
  '\u001b[2J\u001b]0;title\u0007',
  '\r\nX: y',
  '%0a%0d%00',
  '${jndi:ldap://x}',
  '../../etc/passwd',
  '\ud800',
  'a'.repeat(2_000),
  '\u202egnp',
];

test('what callers write forges no line of the log: model, path, user agent, key name, forwarded address', async () => {
  let log = '';
  const gateway = await start({
    server: { trustedProxies: ['loopback'] },
    logDestination: { write: (line) => void (log += line) },
  });
  let named = 0;
  for (const [index, text] of naughty.entries()) {
    const made = await askAdmin(gateway, 'POST', '/keys', { name: text.slice(0, 100) });
    const secret = made.status === 201 ? (made.body.key as string) : gateway.key;
    if (made.status === 201) named++;
    const safe = encodeURIComponent(text.toWellFormed()).slice(0, 500);
    const headers = {
      authorization: `Bearer ${secret}`,
      'user-agent': safe,
      'x-forwarded-for': `${safe}, 203.0.113.${index}`,
    };
    await (await gateway.post(chat, { ...body, model: text }, { headers })).text();
    await (await gateway.post(`/v1/${safe}`, body, { headers })).text();
  }
  await gateway.post(chat, body);
  const requests = () =>
    log
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { msg: string; level: number; clientAddress?: string })
      .filter(({ msg }) => msg === 'request');
  await eventually('all are logged', () => requests().length === naughty.length + 1);
  expect(named).toBeGreaterThan(3);
  expect(Array.from(log).filter((character) => character !== '\n' && character < ' ')).toEqual([]);
  expect(requests().every(({ level }) => level === 30)).toBe(true);
  expect(requests().map(({ clientAddress }) => clientAddress)).toEqual([
    ...naughty.map((_text, index) => `203.0.113.${index}`),
    '127.0.0.1',
  ]);
});
