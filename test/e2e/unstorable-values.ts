import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const adminToken = 'an-admin-token-for-tests';
const maxLimit = 2_147_483_647;
const largest = { concurrency: maxLimit, requestsPerMinute: maxLimit, queueWait: `${maxLimit}ms` };
const secret = randomBytes(24).toString('hex');

/** The faults in the log of a gateway. */
function faultsIn(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => (JSON.parse(line) as { level: number }).level >= 40);
}

/** What no engine can store, asked of a gateway: without a function that makes a database, on SQLite. */
export function describeUnstorableValues(createDatabase: (() => Promise<TestDatabase>) | null): void {
  let database: TestDatabase | null = null;
  let gateway: Gateway;
  let urls: Awaited<ReturnType<Gateway['listen']>>;
  let issued: { readonly id: string; readonly key: string };
  const lines: string[] = [];

  beforeAll(async () => {
    database = (await createDatabase?.()) ?? null;
    gateway = createGateway(
      {
        server: { port: 0 },
        admin: { port: 0, token: adminToken },
        storage: { url: database?.url ?? 'sqlite::memory:', durability: 'normal' },
        limits: largest,
        keys: { 'the largest 😀': { key: secret, ...largest } },
        upstreams: { demo: { url: 'demo:' } },
        models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
      },
      { adminToken, logDestination: { write: (line) => void lines.push(line) } },
    );
    urls = await gateway.listen();
    issued = await gateway.keys.create({ name: 'issued', ...largest });
  });
  // Each test has the log of its own requests.
  beforeEach(() => void lines.splice(0));
  afterAll(async () => {
    await gateway.close();
    await database?.drop();
  });

  async function ask(method: string, path: string, body?: object | string) {
    const isAdmin = path.startsWith('/admin');
    const authorization = `Bearer ${isAdmin ? adminToken : issued.key}`;
    const response = await fetch((isAdmin ? urls.adminUrl : urls.url) + path, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const { error = null } = (await response.json()) as { error?: { code: string; param: string | null } };
    return [response.status, error?.code ?? null, error?.param ?? null];
  }

  test('keys with the largest limits, declared or issued, are stored and used', async () => {
    for (const key of [secret, issued.key]) {
      const response = await fetch(`${urls.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{"model":"demo","messages":[{"role":"user","content":"x"}]}',
      });
      expect(response.status).toBe(200);
      await response.text();
    }
    expect(faultsIn(lines)).toEqual([]);
  });

  const lone = String.raw`\ud800`;
  test.each([
    ['concurrency', '{"name":"x","concurrency":2147483648}'],
    ['concurrency', '{"name":"x","concurrency":1e20}'],
    ['requestsPerMinute', '{"name":"x","requestsPerMinute":2147483648}'],
    ['queueWait', '{"name":"x","queueWait":"2147483648ms"}'],
    ['name', `{"name":"a${lone}"}`],
    ['name', String.raw`{"name":"a\u0000"}`],
    ['models.0', `{"name":"x","models":["a${lone}"]}`],
    ['models.0', String.raw`{"name":"x","models":["a\u0000"]}`],
  ])('a bad %s of a key is a 400: %s', async (param, body) => {
    expect(await ask('POST', '/admin/keys', body)).toEqual([400, 'invalid_value', param]);
    expect(await ask('PATCH', `/admin/keys/${issued.id}`, body)).toEqual([400, 'invalid_value', param]);
    expect(faultsIn(lines)).toEqual([]);
  });

  test.each([lone, String.raw`\u0000`])('a credit with the reference "a%s" is a 400', async (odd) => {
    const body = `{"amount":"1","reference":"a${odd}"}`;
    const path = `/admin/keys/${issued.id}/credits`;
    expect(await ask('POST', path, body)).toEqual([400, 'invalid_value', 'reference']);
    expect(faultsIn(lines)).toEqual([]);
  });

  test.each([lone, String.raw`\u0000`])('a request for the model "a%s" is a 404', async (odd) => {
    const body = `{"model":"a${odd}","messages":[{"role":"user","content":"x"}]}`;
    expect(await ask('POST', '/v1/chat/completions', body)).toEqual([404, 'model_not_found', 'model']);
    const path = '/v1/responses';
    expect(await ask('POST', path, `{"model":"a${odd}","input":"x"}`)).toEqual([
      404,
      'model_not_found',
      'model',
    ]);
    expect(faultsIn(lines)).toEqual([]);
  });

  test.each([
    ['GET', '/v1/key/requests/%00', 404, 'request_not_found', null],
    ['POST', '/v1/key/requests/req_%00/cancel', 404, 'request_not_found', null],
    ['GET', '/v1/key/requests?before=%00', 400, 'invalid_value', 'before'],
    ['GET', '/v1/models/%00', 404, 'model_not_found', 'model'],
    ['GET', '/admin/keys/%00', 404, 'key_not_found', null],
    ['PATCH', '/admin/keys/%00', 404, 'key_not_found', null],
    ['DELETE', '/admin/keys/%00', 404, 'key_not_found', null],
    ['POST', '/admin/keys/%00/rotate', 404, 'key_not_found', null],
    ['GET', '/admin/keys?before=%00', 400, 'invalid_value', 'before'],
    ['GET', '/admin/records/req_%00', 404, 'request_not_found', null],
    ['POST', '/admin/in-flight/req_%00/cancel', 404, 'request_not_found', null],
    ['GET', '/admin/records?before=%00', 400, 'invalid_value', 'before'],
    ['GET', '/admin/records?key=%00', 400, 'invalid_value', 'key'],
    ['GET', '/admin/records?model=%00', 400, 'invalid_value', 'model'],
  ])('%s %s is a %i without a line in the log', async (method, path, ...answer) => {
    const body = method === 'POST' || method === 'PATCH' ? {} : undefined;
    expect(await ask(method, path, body)).toEqual(answer);
    expect(faultsIn(lines)).toEqual([]);
  });

  test('credits of %00 are a 404, and so are such ids from code', async () => {
    const payment = { amount: '1', reference: 'r' };
    expect(await ask('POST', '/admin/keys/%00/credits', payment)).toEqual([404, 'key_not_found', null]);
    const notFound = { code: 'key_not_found' };
    for (const call of [
      () => gateway.keys.get('a\0'),
      () => gateway.keys.update('a\0', {}),
      () => gateway.keys.revoke('a\0'),
      () => gateway.keys.rotate('a\0'),
      () => gateway.keys.credit('a\0', payment),
    ])
      await expect(call()).rejects.toMatchObject(notFound);
    await expect(gateway.records.get('a\0')).rejects.toMatchObject({ code: 'request_not_found' });
    await expect(gateway.cancel('a\0')).rejects.toMatchObject({ code: 'request_not_found' });
    expect(faultsIn(lines)).toEqual([]);
  });
}
