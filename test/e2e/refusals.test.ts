import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { showKey } from '../../src/cli/keys/keys.ts';
import { showRequest } from '../../src/cli/requests/show-request.ts';
import { askAdmin } from '../support/admin-client.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  clock = createFakeClock(Date.UTC(2030, 0, 31, 12));
  upstream = await startUpstream();
  upstream.play((response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '30' }).end('{}');
  });
  gateway = await startGateway({ upstreamUrl: upstream.url, price: { input: '1', output: '2' }, clock });
  vi.stubEnv('TEXTGATE_ADMIN_URL', gateway.adminUrl);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', gateway.adminToken);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await gateway.close();
  await upstream.close();
});

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

function ask(secret: string): Promise<Response> {
  return gateway.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } });
}

test('the requests that limits refuse are summed for their key, and shown to its holder and to operators', async () => {
  const { key, id } = await gateway.gateway.keys.create({ name: 'ann', requestsPerMinute: 2 });
  const { key: poor } = await gateway.gateway.keys.create({ name: 'bob', balance: '0' });
  for (let sent = 0; sent < 5; sent++) await (await ask(key)).text();
  await (await ask(poor)).text();
  const seen = async (keyId: string) => (await askAdmin(gateway, 'GET', `/keys/${keyId}`)).body.refused_today;
  expect(await seen(id)).toEqual({});

  clock.advance(5_000);
  await eventually('the counts are added', async () => Object.keys(await seen(id)).length > 0);
  expect(await seen(id)).toEqual({ rate: 3 });
  const own = await fetch(`${gateway.url}/v1/key`, { headers: { authorization: `Bearer ${key}` } });
  expect(await own.json()).toMatchObject({ refused_today: { rate: 3 } });
  expect(await showKey('ann', {})).toMatch(/^refused today +3 requests: 3 by rate$/m);
  expect(JSON.parse(await showKey('ann', { json: true }))).toMatchObject({ refused_today: { rate: 3 } });
  const { data } = (await askAdmin(gateway, 'GET', '/keys')).body;
  const all = data as readonly { readonly name: string; readonly refused_today: object }[];
  expect(Object.fromEntries(all.map(({ name, refused_today: refused }) => [name, refused]))).toEqual({
    ann: { rate: 3 },
    bob: { balance: 1 },
    test: {},
  });

  clock.advance(12 * 3_600_000);
  expect(await seen(id)).toEqual({});
  expect(await showKey('ann', {})).toMatch(/^refused today +none$/m);
});

test('a request that was refused because its upstream paused shows code, cause and upstream', async () => {
  await (await ask(gateway.key)).text();
  const refused = await ask(gateway.key);
  expect(refused.status).toBe(429);
  await refused.text();
  const id = refused.headers.get('x-request-id') ?? '';
  const shown = await showRequest(id, {});
  expect(shown).toMatch(/^upstream +local, which was not called$/m);
  expect(shown).toMatch(/^outcome +upstream_failed, status 429$/m);
  expect(shown).toMatch(/^code +upstream_rate_limited$/m);
  expect(shown).toMatch(
    /^cause +local: tiny is paused by the provider \(retry-after\), which ends in \d+ s$/m,
  );
  expect(JSON.parse(await showRequest(id, { json: true }))).toMatchObject({
    code: 'upstream_rate_limited',
    cause: expect.stringContaining('local: tiny is paused by the provider (retry-after), which ends in'),
  });
  const receipt = await fetch(`${gateway.url}/v1/key/requests/${id}`, {
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  const text = await receipt.text();
  expect(JSON.parse(text)).toMatchObject({ code: 'upstream_rate_limited' });
  expect(text).not.toContain('paused by the provider');
});
