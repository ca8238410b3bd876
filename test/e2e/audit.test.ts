import { describe, expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema/schema.ts';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const adasToken = 'the-admin-token-of-ada';
const readersToken = 'the-token-of-a-reader';

const tokens = [
  { name: 'ada', token: adasToken },
  { name: 'grafana', token: readersToken, readOnly: true },
];

async function open(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startGateway({ admin: { tokens }, ...options });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Calls the admin API with a token, which is that of ada unless another is given. */
async function call(
  gateway: TestGateway,
  method: string,
  target: string,
  body?: object,
  headers: readonly (readonly [string, string])[] = [['Authorization', `Bearer ${adasToken}`]],
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const answer = await sendRaw(gateway, {
    method,
    target,
    headers: [...headers, ['Content-Type', 'application/json']],
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: answer.status,
    body: JSON.parse(Buffer.from(answer.body === '' ? '{}' : answer.body, 'latin1').toString()) as Record<
      string,
      unknown
    >,
  };
}

/** The lines of the audit, oldest first, behind a number. */
async function linesBehind(gateway: TestGateway, number = 0): Promise<readonly PresentedAuditLine[]> {
  const { body } = await call(gateway, 'GET', '/admin/audit?limit=200');
  return (body['data'] as PresentedAuditLine[]).filter((line) => line.number > number).toReversed();
}

/** The one line that some work adds. */
async function lineOf(gateway: TestGateway, work: () => Promise<unknown>): Promise<PresentedAuditLine> {
  const before = (await linesBehind(gateway)).at(-1)?.number ?? 0;
  await work();
  await eventually('there is a line', async () => (await linesBehind(gateway, before)).length > 0);
  const lines = await linesBehind(gateway, before);
  expect(lines).toHaveLength(1);
  return lines[0] as PresentedAuditLine;
}

const sha = expect.stringMatching(/^sha256:[0-9a-f]{12}$/) as unknown;

describe('each change of a key by the admin API leaves one line', () => {
  test('with each field before and after, and no secret', async () => {
    const gateway = await open();
    const settings = {
      name: 'bob',
      requestsPerMinute: 60,
      queueWait: '5s',
      balance: '5.00',
      tags: ['a', 'b'],
    };
    let made: Record<string, unknown> = {};
    const created = await lineOf(gateway, async () => {
      made = (await call(gateway, 'POST', '/admin/keys', settings)).body;
    });
    const id = String(made['id']);
    expect(created).toMatchObject({
      way: 'admin_api',
      actor: 'ada',
      address: null,
      action: 'key.create',
      key_id: id,
      subject: 'bob',
      result: 'done',
      times: 1,
    });
    expect(created.changes).toEqual([
      { field: 'balance', before: null, after: '5.00' },
      { field: 'name', before: null, after: 'bob' },
      { field: 'queueWait', before: null, after: '5s' },
      { field: 'requestsPerMinute', before: null, after: '60' },
      { field: 'secret', before: null, after: sha },
      { field: 'tags', before: null, after: '["a","b"]' },
      { field: 'weight', before: null, after: '1' },
    ]);
    const change = { requestsPerMinute: 10, queueWait: null, budget: { amount: '50', per: 'month' } };
    const changed = await lineOf(gateway, () => call(gateway, 'PATCH', `/admin/keys/${id}`, change));
    expect(changed).toMatchObject({ action: 'key.change', key_id: id, subject: 'bob', result: 'done' });
    expect(changed.changes).toEqual([
      { field: 'budget.amount', before: null, after: '50.00' },
      { field: 'budget.per', before: null, after: 'month' },
      { field: 'budget.timeZone', before: null, after: 'UTC' },
      { field: 'queueWait', before: '5s', after: null },
      { field: 'requestsPerMinute', before: '60', after: '10' },
    ]);
    const rotated = await lineOf(gateway, () => call(gateway, 'POST', `/admin/keys/${id}/rotate`, {}));
    expect(rotated).toMatchObject({ action: 'key.rotate', key_id: id });
    expect(rotated.changes).toContainEqual({
      field: 'secret',
      before: created.changes[4]?.after,
      after: sha,
    });
    const payment = { amount: '7', reference: 'invoice 7' };
    const credited = await lineOf(gateway, () => call(gateway, 'POST', `/admin/keys/${id}/credits`, payment));
    expect(credited).toMatchObject({ action: 'key.credit', subject: 'bob' });
    expect(credited.changes).toEqual([
      { field: 'amount', before: null, after: '7.00' },
      { field: 'reference', before: null, after: 'invoice 7' },
    ]);
    const revoked = await lineOf(gateway, () => call(gateway, 'DELETE', `/admin/keys/${id}`));
    expect(revoked).toMatchObject({
      action: 'key.revoke',
      changes: [{ field: 'revoked', before: null, after: expect.any(String) as unknown }],
    });
    expect(JSON.stringify(await linesBehind(gateway))).not.toContain(String(made['key']));
  });

  test('and what changes nothing leaves none', async () => {
    const gateway = await open();
    const { id } = await gateway.gateway.keys.create({ name: 'bob', balance: '1' });
    await gateway.gateway.keys.credit(id, { amount: '1', reference: 'r' });
    await gateway.gateway.keys.revoke(id);
    const last = (await linesBehind(gateway)).at(-1)?.number;
    await call(gateway, 'PATCH', `/admin/keys/${id}`, { name: 'bob' });
    await call(gateway, 'PATCH', `/admin/keys/${id}`, {});
    await call(gateway, 'POST', `/admin/keys/${id}/credits`, { amount: '1', reference: 'r' });
    await call(gateway, 'DELETE', `/admin/keys/${id}`);
    expect(await linesBehind(gateway, last)).toEqual([]);
  });
});

test('changes from code, by commands and in the console say so', async () => {
  const gateway = await open();
  const byCode = await lineOf(gateway, () => gateway.gateway.keys.create({ name: 'coded' }));
  expect(byCode).toMatchObject({ way: 'code', actor: null, address: null, subject: 'coded' });
  const asCommand = [
    ['Authorization', `Bearer ${gateway.adminToken}`],
    ['User-Agent', 'textgate-cli/1.0.0'],
  ] as const;
  const byCommand = await lineOf(gateway, () =>
    call(gateway, 'POST', '/admin/keys', { name: 'b' }, asCommand),
  );
  expect(byCommand).toMatchObject({ way: 'cli', actor: 'admin.token' });
  let cookie = '';
  const login = await lineOf(gateway, async () => {
    ({ cookie } = await logIn(gateway, adasToken));
  });
  expect(login).toMatchObject({ way: 'console', actor: 'ada', action: 'session.open', result: 'done' });
  const { origin } = new URL(gateway.adminUrl);
  const asPage = [
    ['Cookie', cookie],
    ['Origin', origin],
    ['Sec-Fetch-Site', 'same-origin'],
  ] as const;
  const inConsole = await lineOf(gateway, () => call(gateway, 'POST', '/admin/keys', { name: 'c' }, asPage));
  expect(inConsole).toMatchObject({ way: 'console', actor: 'ada', subject: 'c' });
  const logout = await lineOf(gateway, () => call(gateway, 'DELETE', '/console/session', undefined, asPage));
  expect(logout).toMatchObject({ way: 'console', actor: 'ada', action: 'session.end' });
});

test('what is refused has a line with its code, and who asked where that is known', async () => {
  const gateway = await open();
  const asReader = [['Authorization', `Bearer ${readersToken}`]] as const;
  const asStranger = [['Authorization', 'Bearer of-someone-else-entirely']] as const;
  const refused = (
    ...request: readonly [string, string, object?, (readonly (readonly [string, string])[])?]
  ) => lineOf(gateway, () => call(gateway, ...request));
  expect(await refused('POST', '/admin/keys', { name: '' })).toMatchObject({
    actor: 'ada',
    action: 'key.create',
    result: 'invalid_value',
    key_id: null,
    changes: [],
  });
  expect(await refused('PATCH', '/admin/keys/key_NoKeyHasThis', { name: 'x' })).toMatchObject({
    action: 'key.change',
    result: 'key_not_found',
    key_id: 'key_NoKeyHasThis',
  });
  expect(await refused('POST', '/admin/keys', { name: 'x' }, asReader)).toMatchObject({
    actor: 'grafana',
    action: 'key.create',
    result: 'read_only_token',
  });
  expect(await refused('GET', '/admin/backup', undefined, asReader)).toMatchObject({
    actor: 'grafana',
    action: 'database.backup',
    result: 'read_only_token',
  });
  expect(await refused('GET', '/admin/records', undefined, asStranger)).toMatchObject({
    actor: null,
    action: 'admin.call',
    subject: 'GET /records',
    result: 'invalid_api_key',
  });
  const login = await refused('POST', '/console/session', { token: 'a-token-of-no-operator' }, []);
  expect(login).toMatchObject({
    way: 'console',
    actor: null,
    action: 'session.open',
    result: 'invalid_api_key',
  });
  expect(JSON.stringify(await linesBehind(gateway))).not.toMatch(/someone-else|no-operator/);
  const last = (await linesBehind(gateway)).at(-1)?.number;
  await call(gateway, 'GET', '/admin/records/req_unknown');
  await call(gateway, 'GET', '/admin/keys', undefined, asReader);
  expect(await linesBehind(gateway, last)).toEqual([]);
});

test('an act whose client leaves before its answer has one line, which says so', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  receiver.play('hold');
  const gateway = await open({ webhooks: { ops: { url: receiver.url, secret: receiver.secret } } });
  const leaving = new AbortController();
  const line = await lineOf(gateway, async () => {
    const left = fetch(`${gateway.adminUrl}/admin/webhooks/ops/test`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adasToken}` },
      signal: leaving.signal,
    });
    await eventually('the test has arrived', () => receiver.seen.length === 1);
    leaving.abort();
    await expect(left).rejects.toThrow('aborted');
  });
  expect(line).toMatchObject({
    way: 'admin_api',
    actor: 'ada',
    action: 'webhook.test',
    subject: 'ops',
    result: 'unanswered',
  });
  receiver.letGo();
  await eventually('the act goes on to its end', () => receiver.handled.length === 1);
  await lineOf(gateway, () => call(gateway, 'POST', '/admin/keys', { name: 'a later line' }));
  expect(await linesBehind(gateway, line.number)).toHaveLength(1);
});

test('addresses are in the audit where they are logged, and nowhere else', async () => {
  const gateway = await open({ server: { logAddresses: true } });
  const line = await lineOf(gateway, () => call(gateway, 'POST', '/admin/keys', { name: 'bob' }));
  expect(line.address).toBe('127.0.0.1');
});

test('a reload leaves one line with what differs, secrets as fingerprints; the declared keys have lines of their own', async () => {
  const secret = 'a-key-of-bob-that-none-can-guess-1';
  const gateway = await open({ keys: { bob: { key: secret, requestsPerMinute: 60 } } });
  expect(await linesBehind(gateway)).toMatchObject([
    {
      way: 'declared_keys',
      action: 'key.create',
      subject: 'bob',
      key_id: expect.stringMatching(/^key_/) as unknown,
    },
    { way: 'code', action: 'key.create', subject: 'test' },
  ]);
  const last = (await linesBehind(gateway)).at(-1)?.number;
  const config = (limit: number, apiKey: string): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: gateway.adminToken, tokens },
    storage: { url: 'sqlite::memory:', durability: 'normal' },
    keys: { bob: { key: secret, requestsPerMinute: limit } },
    upstreams: { local: { url: 'demo:', apiKey } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true } },
  });
  gateway.gateway.reload(config(60, 'sk-upstream-secret'));
  gateway.gateway.reload(config(10, 'sk-another-upstream-secret'));
  gateway.gateway.reload(config(10, 'sk-another-upstream-secret'));
  await eventually('both are noted', async () => (await linesBehind(gateway, last)).length > 1);
  const lines = await linesBehind(gateway, last);
  const ofWay = (way: string) => lines.filter((line) => line.way === way);
  expect(ofWay('declared_keys').map(({ action, changes }) => [action, changes])).toEqual([
    ['key.change', [{ field: 'requestsPerMinute', before: '60', after: '10' }]],
  ]);
  expect(ofWay('config').at(-1)?.changes).toContainEqual({
    field: 'upstreams.local.apiKey',
    before: sha,
    after: sha,
  });
  expect(lines.filter(({ action }) => action === 'config.load').length).toBeLessThanOrEqual(2);
  expect(JSON.stringify(lines)).not.toMatch(/upstream-secret|a-key-of-bob|the-admin-token/);
});

test('a read-only token reads the audit, as CSV without formulas, too', async () => {
  const gateway = await open();
  const name = '=HYPERLINK("http://evil.example") <b>,"';
  await gateway.gateway.keys.create({ name });
  const headers = [['Authorization', `Bearer ${readersToken}`]] as const;
  const asCsv = await sendRaw(gateway, {
    target: '/admin/audit?limit=1',
    headers: [...headers, ['Accept', 'text/csv']],
  });
  const [header = '', line = ''] = Buffer.from(asCsv.body, 'latin1').toString('utf8').split('\r\n');
  expect(asCsv.headers.get('x-textgate-next')).toBe('2');
  expect(header).toBe('number,created_at,way,actor,address,action,key_id,subject,result,times,changes');
  expect(line).toContain('"\'=HYPERLINK(""http://evil.example"") <b>');
  for (const [query, code] of [
    ['before=x', 'invalid_value'],
    ['action=key.explode', 'invalid_value'],
    ['from=2030-13-01', 'invalid_value'],
    ['limit=1001', 'invalid_value'],
    ['serch=x', 'unknown_parameter'],
    [`search=${'x'.repeat(10_000)}`, 'invalid_value'],
    ['from=2030-01-02&to=2030-01-01', 'invalid_value'],
    ['key=bob', 'key_not_found'],
  ]) {
    const { body } = await call(gateway, 'GET', `/admin/audit?${query}`, undefined, headers);
    expect([query, (body['error'] as { code: string }).code]).toEqual([query, code]);
  }
});

test('an archive that removes nothing and folds nothing leaves no line', async () => {
  const gateway = await open();
  const last = (await linesBehind(gateway)).at(-1)?.number;
  const removal = { before: '2020-01-01', ended: [], lost: [] };
  expect((await call(gateway, 'POST', '/admin/archive/removals', removal)).body).toEqual({ removed: 0 });
  expect((await call(gateway, 'POST', '/admin/archive/folds')).body).toEqual({ postings: 0 });
  await lineOf(gateway, () => call(gateway, 'POST', '/admin/keys', { name: 'a later line' }));
  expect(await linesBehind(gateway, last)).toHaveLength(1);
});

test('what has not the form of an id, as a key in its place, is in no line', async () => {
  const gateway = await open();
  for (const text of [gateway.key, adasToken, 'x'.repeat(10_000), 'bob', '%ff']) {
    const line = await lineOf(gateway, () => call(gateway, 'DELETE', `/admin/keys/${text}`));
    expect(line).toMatchObject({ action: 'key.revoke', key_id: null, subject: null });
  }
});

test('what looks like the key of a provider is in no value of a change', async () => {
  const gateway = await open();
  const line = await lineOf(gateway, () =>
    call(gateway, 'POST', '/admin/keys', { name: 'a', tags: ['sk-ant-api03-AbCdEfGh12345678', 'team-a'] }),
  );
  expect(line.changes).toContainEqual({ field: 'tags', before: null, after: '["[key]","team-a"]' });
});
