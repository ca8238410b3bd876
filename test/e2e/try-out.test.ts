import type { ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { PresentedAuditLine } from '../../src/http/present/audit.ts';
import { askAdmin } from '../support/admin-client.ts';
import { plantPrompts } from '../support/canaries.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { chatFrames, cut, sayTexts, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const readOnlyToken = 'a-read-only-token-for-tests';
const lines: string[] = [];
const { upstream, gateway } = await openStage({
  price: { input: '1', output: '2' },
  otherModel: 'large',
  // A key is declared with an end that has passed, and not issued with one.
  keys: { expired: { key: 'a-key-whose-end-has-passed-4f1c', expiresAt: '2001-01-01' } },
  limits: { concurrency: 100 },
  admin: { readOnlyToken },
  logDestination: { write: (line) => void lines.push(line) },
});
const { keys } = gateway.gateway;
const own = (await keys.list()).data[0]?.id ?? '';

const prompt = 'a prompt that is in no log';
const chat = { model: 'small', messages: [{ role: 'user', content: prompt }] };
const asked = { model: 'small', input: prompt };

/** Sends a request as a key; `token` may be another one. */
function tryOut(
  key: string,
  path: string,
  body: object,
  {
    token = gateway.adminToken,
    headers = {},
    signal,
  }: {
    readonly token?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Response> {
  plantPrompts(body);
  return fetch(`${gateway.adminUrl}/admin/try/${path}?key=${key}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function errorOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { error: { code: string; param: string | null } };
  return [response.status, error.code, error.param];
}

/** Begins a stream as a key, whose upstream has sent one text and sends no more. */
async function begin(
  signal?: AbortSignal,
): Promise<{ readonly live: LiveAnswer; readonly upstreamSide: ServerResponse }> {
  const started = Promise.withResolvers<ServerResponse>();
  upstream.play((response) => started.resolve(sendStream(response, chatFrames(['one']).slice(0, 2))));
  const sent = tryOut(
    own,
    'chat/completions',
    { ...chat, stream: true },
    signal === undefined ? {} : { signal },
  );
  const live = readLive(sent);
  const upstreamSide = await started.promise;
  await eventually('the first text is there', () => live.text.includes('one'));
  return { live, upstreamSide };
}

const running = async (): Promise<readonly { request_id: string; key_id: string }[]> =>
  (await askAdmin(gateway, 'GET', '/in-flight')).body.data;

/** Ids and times, which differ between two answers to one request. */
const volatile =
  /\b(req|chatcmpl|resp|msg)_?-?[0-9a-zA-Z_-]{20,}|Date: [^\r]+|"(created|created_at|completed_at)":\d+|(?<=reset-requests: )\S+|(?<=remaining-requests: )\d+/g;

/** The bytes of an answer on a connection of its own. */
async function bytesOf(url: string, path: string, token: string, body: object): Promise<string> {
  const client = openRaw(url);
  const { host } = new URL(url);
  client.socket.write(rawPost(path, token, body).replace('Host: x', `Host: ${host}\r\nConnection: close`));
  await eventually('the answer is whole', client.isClosed);
  return client.text().replace(volatile, '#');
}

describe.each([
  ['chat/completions', chat],
  ['responses', asked],
])('a try-out of %s', (path, body) => {
  test.each([
    ['a whole answer', body],
    ['a stream', { ...body, stream: true }],
    ['a body with a fault', { ...body, temperature: 'x' }],
    ['an unknown model', { ...body, model: 'none' }],
  ])('gets the bytes that the key’s holder gets: %s', async (_, sent) => {
    upstream.play(sayTexts(['hello', ' there']));
    const shown = await bytesOf(gateway.url, `/v1/${path}`, gateway.key, sent);
    const target = `/admin/try/${path}?key=${own}`;
    expect(shown).toMatch(/^HTTP\/1\.1 (200|400|404) .*\r\n/);
    expect(shown).toContain('x-ratelimit-limit-requests');
    expect(await bytesOf(gateway.adminUrl, target, gateway.adminToken, sent)).toBe(shown);
  });
});

test('is recorded, charged and logged as a request of the key, without its prompt', async () => {
  upstream.play(sayTexts(['hello']));
  const { key, secret } = await gateway.gateway.createKey('payer', {
    balanceNanos: 1_000_000_000,
    tags: ['search'],
    allowFrom: ['192.0.2.0/24'],
  });
  const refused = await gateway.post('/v1/responses', asked, {
    headers: { authorization: `Bearer ${secret}` },
  });
  expect(await errorOf(refused)).toMatchObject([403, 'address_not_allowed', null]);
  const answer = await tryOut(key.id, 'responses', asked, { headers: { 'x-textgate-tag': 'search' } });
  expect([answer.status, answer.headers.get('x-textgate-charge')]).toEqual([200, '0.000025']);
  await answer.text();
  const requestId = answer.headers.get('x-request-id') ?? '';
  const { body: record } = await askAdmin(gateway, 'GET', `/records/${requestId}`);
  expect(record).toMatchObject({ key_id: key.id, tag: 'search', charge: '0.000025', outcome: 'completed' });
  expect(await keys.get(key.id)).toMatchObject({ balance: '0.999975' });
  const line = lines.find((one) => one.includes(requestId)) ?? '{}';
  expect(JSON.parse(line)).toMatchObject({ msg: 'request', keyId: key.id, tryOut: true });
  expect(lines.join('')).not.toContain(prompt);
});

test('a request of a client has no tryOut in its line of the log', async () => {
  upstream.play(sayTexts(['hello']));
  const answer = await gateway.post('/v1/responses', asked);
  await answer.text();
  const line = lines.find((one) => one.includes(answer.headers.get('x-request-id') ?? '?')) ?? '{}';
  expect(JSON.parse(line)).toMatchObject({ msg: 'request' });
  expect(JSON.parse(line)).not.toHaveProperty('tryOut');
});

describe('a try-out is refused', () => {
  const send = async (key: string, body: object = chat): Promise<unknown> =>
    errorOf(await tryOut(key, 'chat/completions', body));

  test('as the key’s own request: its balance, its rate, its models', async () => {
    upstream.play(sayTexts(['hello']));
    const { key: poor } = await gateway.gateway.createKey('poor', { balanceNanos: 0 });
    const { key: slow } = await gateway.gateway.createKey('slow', { requestsPerMinute: 1 });
    const { key: other } = await gateway.gateway.createKey('other', { models: ['large'] });
    expect(await send(poor.id)).toEqual([402, 'insufficient_balance', null]);
    expect((await tryOut(slow.id, 'chat/completions', chat)).status).toBe(200);
    expect(await send(slow.id)).toEqual([429, 'rate_limit_exceeded', null]);
    expect(await send(other.id)).toEqual([403, 'model_not_allowed', 'model']);
    expect(await send(own, { ...chat, model: 'none' })).toEqual([404, 'model_not_found', 'model']);
  });

  test('with an empty key, for an unknown one, and for one that is revoked or expired', async () => {
    const { key: revoked } = await gateway.gateway.createKey('revoked');
    await keys.revoke(revoked.id);
    const [expired] = (await keys.list({ search: 'expired' })).data;
    expect(await send('')).toEqual([400, 'missing_required_parameter', 'key']);
    expect(await send('a&key=b')).toEqual([400, 'invalid_value', 'key']);
    expect(await send('%00')).toEqual([400, 'invalid_value', 'key']);
    expect(await send('key_000000000000')).toEqual([404, 'key_not_found', 'key']);
    expect(await send(revoked.id)).toEqual([400, 'invalid_value', 'key']);
    expect(await send(expired?.id ?? '')).toEqual([400, 'invalid_value', 'key']);
    expect((await askAdmin(gateway, 'GET', `/try/models?key=${revoked.id}`)).status).toBe(400);
    expect((await askAdmin(gateway, 'GET', '/try/models?key=')).status).toBe(400);
  });

  test('with the read-only token, the secret of a key, and from another page', async () => {
    const path = 'chat/completions';
    const before = upstream.seen.length;
    const reading = await tryOut(own, path, chat, { token: readOnlyToken });
    expect(await errorOf(reading)).toEqual([403, 'read_only_token', null]);
    const ownSecret = await tryOut(own, path, chat, { token: gateway.key });
    expect(await errorOf(ownSecret)).toEqual([401, 'invalid_api_key', null]);
    const { cookie } = await logIn(gateway, gateway.adminToken);
    const ask = (headers: readonly (readonly [string, string])[]) =>
      sendRaw(gateway, {
        method: 'POST',
        target: `/admin/try/${path}?key=${own}`,
        headers: [['Content-Type', 'application/json'], ['Cookie', cookie], ...headers],
        body: JSON.stringify(chat),
      });
    expect((await ask([])).status).toBe(401);
    expect((await ask([['Origin', 'http://attacker.example']])).status).toBe(401);
    expect(upstream.seen).toHaveLength(before);
    upstream.play(sayTexts(['hello']));
    expect((await ask([['Origin', new URL(gateway.adminUrl).origin]])).status).toBe(200);
  });
});

/** The newest line of the audit about a try-out, once there is one that fits. */
async function triedLine(fits: Partial<PresentedAuditLine>): Promise<PresentedAuditLine> {
  let found: PresentedAuditLine | undefined;
  await eventually('there is a line', async () => {
    const { body } = await askAdmin(gateway, 'GET', '/audit?limit=200');
    found = (body.data as readonly PresentedAuditLine[]).find((line) =>
      isDeepStrictEqual({ ...line, ...fits }, line),
    );
    return found !== undefined;
  });
  return found as PresentedAuditLine;
}

test('has one line in the audit: who tried which model as which key, and no word of it', async () => {
  upstream.play(sayTexts(['hello']));
  const { key } = await gateway.gateway.createKey('audited', { models: ['small'] });
  const about = { action: 'request.try', key_id: key.id } as const;
  const answer = await tryOut(key.id, 'chat/completions', { ...chat, stream: true });
  await answer.text();
  expect(await triedLine({ ...about, result: 'done' })).toMatchObject({
    way: 'admin_api',
    actor: 'admin.token',
    subject: 'audited',
    times: 1,
    changes: [
      { field: 'model', before: null, after: 'small' },
      { field: 'request', before: null, after: answer.headers.get('x-request-id') },
    ],
  });
  const secretModel = 'a model name that has a secret';
  await (await tryOut(key.id, 'responses', { ...asked, model: secretModel })).text();
  expect(await triedLine({ ...about, result: 'model_not_found' })).toMatchObject({
    changes: [{ field: 'request' }],
  });
  await (await tryOut('key_NoKeyHasThis', 'responses', asked)).text();
  expect(await triedLine({ key_id: 'key_NoKeyHasThis' })).toMatchObject({
    result: 'key_not_found',
    subject: null,
  });
  await (await tryOut(key.id, 'responses', asked, { token: readOnlyToken })).text();
  expect(await triedLine({ action: 'request.try', result: 'read_only_token' })).toMatchObject({
    actor: 'admin.readOnlyToken',
    key_id: key.id,
    subject: 'audited',
  });
  const { text } = await askAdmin(gateway, 'GET', '/audit?limit=200');
  for (const word of [prompt, secretModel]) expect(text).not.toContain(word);
  const { body } = await askAdmin(gateway, 'GET', `/audit?key=${key.id}&action=request.try`);
  expect(body.data).toHaveLength(3);
});

test('a stream is in the list of running requests, and is cancelled there', async () => {
  const { live } = await begin();
  const [shown] = await running();
  expect(shown).toMatchObject({ key_id: own });
  expect((await askAdmin(gateway, 'POST', `/in-flight/${shown?.request_id}/cancel`)).status).toBe(200);
  await live.ended;
  expect(live.text).toContain('request_cancelled');
  expect(live.text).not.toContain('[DONE]');
  await eventually('the upstream is stopped', () => upstream.running === 0);
});

test('an operator that disconnects stops the upstream', async () => {
  const leaving = new AbortController();
  const { live } = await begin(leaving.signal);
  leaving.abort();
  await live.ended;
  await eventually('the upstream is stopped', () => upstream.running === 0);
  await eventually('the request has ended', async () => (await running()).length === 0);
  await triedLine({ action: 'request.try', key_id: own, result: 'client_closed' });
});

test('a stream that its upstream cuts ends with an error, and never with [DONE]', async () => {
  const { live, upstreamSide } = await begin();
  cut(upstreamSide, 'rst');
  await live.ended;
  expect(live.text).toContain('"error"');
  expect(live.text).not.toContain('[DONE]');
  expect(live.broken).toBe(true);
});

test('lists the models that the key may use, as the key itself sees them', async () => {
  const { key } = await gateway.gateway.createKey('other', { models: ['large'] });
  const headers = { authorization: `Bearer ${gateway.key}` };
  const seen = await (await fetch(`${gateway.url}/v1/models`, { headers })).text();
  expect((await askAdmin(gateway, 'GET', `/try/models?key=${own}`)).text).toBe(seen);
  expect((await askAdmin(gateway, 'GET', `/try/models?key=${key.id}`)).body).toMatchObject({
    data: [{ id: 'large' }],
  });
});

describe('without a key, a try-out', () => {
  const url = (path: string): string => `${gateway.adminUrl}/admin/try/${path}`;
  const send = (): Promise<Response> =>
    fetch(url('chat/completions'), {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(chat),
    });
  const listPlayground = async () => (await keys.list({ search: 'playground' })).data;

  test('makes no key by listing models, and one by the first requests, which all are sent as', async () => {
    const headers = { authorization: `Bearer ${readOnlyToken}` };
    const models = await (await fetch(url('models'), { headers })).json();
    expect(models).toMatchObject({ data: [{ id: 'small' }, { id: 'large' }] });
    expect(await listPlayground()).toEqual([]);
    upstream.play(sayTexts(['hello']));
    const answers = await Promise.all([send(), send()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await Promise.all(answers.map((answer) => answer.text()));
    const [key, ...others] = await listPlayground();
    expect(others).toEqual([]);
    expect(key).toMatchObject({ budget: { amount: '1.00', per: 'day' } });
    const made = await triedLine({ action: 'key.create', subject: 'playground' });
    expect(made).toMatchObject({ way: 'admin_api', actor: 'admin.token', key_id: key?.id });
    const ids = answers.map(({ headers: sent }) => sent.get('x-request-id'));
    const records = await Promise.all(ids.map((id) => askAdmin(gateway, 'GET', `/records/${id}`)));
    expect(records.map(({ body }) => body.key_id)).toEqual([key?.id, key?.id]);
  });

  test('is refused by the key’s budget, and by its revocation, as that of any key', async () => {
    upstream.play(sayTexts(['hello']));
    await (await send()).text();
    const [{ id } = { id: '' }] = await listPlayground();
    await keys.update(id, { budget: { amount: '0' } });
    expect(await errorOf(await send())).toEqual([402, 'budget_exhausted', null]);
    await keys.revoke(id);
    expect(await errorOf(await send())).toEqual([400, 'invalid_value', 'key']);
  });
});

test('works where an app mounts the operators’ routes', async () => {
  upstream.play(sayTexts(['hello']));
  const { createServer } = await import('node:http');
  const server = createServer(gateway.gateway.admin);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const answer = await fetch(`http://127.0.0.1:${port}/admin/try/chat/completions?key=${own}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...chat, stream: true }),
  });
  expect(await answer.text()).toContain('data: [DONE]');
  server.close();
  server.closeAllConnections();
});
