import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, GatewayError, createGateway } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ upstreamUrl: upstream.url });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const body = { model: 'small', messages: [{ role: 'user', content: 'hello' }] };

/** What the admin API answers to a read. */
const readAdmin = async (path: string): Promise<unknown> => (await askAdmin(gateway, 'GET', path)).body;

describe('from code', () => {
  test('a key is managed with the objects of the admin API', async () => {
    const { keys } = gateway.gateway;
    const { key: secret, ...created } = await keys.create({
      name: 'app',
      balance: '5.00',
      queueWait: '5s',
      models: ['small'],
      expiresAt: '2030-01-01',
    });
    expect(secret).toMatch(/^sk-tg-/);
    expect(created).toMatchObject({
      balance: '5.00',
      expires_at: '2030-01-01T00:00:00.000Z',
      models: ['small'],
    });
    expect(created).toEqual(await readAdmin(`/keys/${created.id}`));
    expect(await keys.get(created.id)).toEqual(created);
    expect(await keys.list({ limit: 1 })).toEqual(await readAdmin('/keys?limit=1'));

    expect(await keys.update(created.id, { concurrency: 7, models: null })).toMatchObject({
      limits: { concurrency: 7, queue_wait_ms: 5_000 },
      models: null,
    });
    const payment = { amount: '1.50', reference: 'invoice 1' };
    expect(await keys.credit(created.id, payment)).toMatchObject({ booked: true, balance: '6.50' });
    expect(await keys.credit(created.id, payment)).toMatchObject({ booked: false, balance: '6.50' });
    const rotated = await keys.rotate(created.id);
    const asBearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
    expect((await fetch(`${gateway.url}/v1/key`, asBearer(secret))).status).toBe(401);
    expect((await fetch(`${gateway.url}/v1/key`, asBearer(rotated.key))).status).toBe(200);
    expect((await keys.revoke(created.id)).revoked_at).not.toBeNull();
    expect((await fetch(`${gateway.url}/v1/key`, asBearer(rotated.key))).status).toBe(401);
  });

  test('a running request is listed and cancelled, and its record is read', async () => {
    const { gateway: own } = gateway;
    upstream.play(() => {});
    const answer = gateway.post('/v1/chat/completions', body);
    await eventually('the request runs', () => upstream.running === 1);
    const running = await own.inFlight();
    expect(running.data).toHaveLength(1);
    expect(running).toEqual(await readAdmin('/in-flight'));
    const id = String(running.data[0]?.request_id);
    expect(await own.cancel(id)).toEqual({ request_id: id, cancelled: true });
    await (await answer).text();
    await eventually('it is settled', async () => (await own.records.get(id)).outcome === 'cancelled');
    const page = await own.records.list({ limit: 1 });
    expect(page.data).toEqual([await own.records.get(id)]);
    expect(page).toEqual(await readAdmin('/records?limit=1'));
    const ofCode = { way: 'code', actor: null, subject: id, result: 'done', times: 1 };
    await eventually('the audit has it', async () =>
      JSON.stringify(await readAdmin('/audit?action=request.cancel')).includes(id),
    );
    expect(await readAdmin('/audit?action=request.cancel')).toMatchObject({ data: [ofCode] });
    await expect(own.cancel(id)).rejects.toMatchObject({ code: 'request_not_found', status: 404 });
  });

  test.each([
    ['an unknown key', (own) => own.keys.get('key_none'), 'key_not_found', 404, null],
    ['a wrong setting', (own) => own.keys.create({ name: '' }), 'invalid_value', 400, 'name'],
    [
      'an unknown setting',
      (own) => own.keys.update('key_none', { balence: '1' } as object),
      'unknown_parameter',
      400,
      'balence',
    ],
    [
      'an unknown field of a list',
      (own) => own.keys.list({ limi: 1 } as object),
      'unknown_parameter',
      400,
      'limi',
    ],
    [
      'an unknown field of a list of records',
      (own) => own.records.list({ models: 'small' } as object),
      'unknown_parameter',
      400,
      'models',
    ],
    ['an unknown cursor', (own) => own.records.list({ before: 'req_none' }), 'invalid_value', 400, 'before'],
    ['an unknown request', (own) => own.records.get('req_none'), 'request_not_found', 404, null],
  ] satisfies [string, (own: TestGateway['gateway']) => Promise<unknown>, string, number, string | null][])(
    '%s is a GatewayError with the fields of the HTTP error',
    async (_case, call, code, status, param) => {
      const error: unknown = await call(gateway.gateway).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ name: 'GatewayError', code, status, param });
    },
  );

  test('an input that is no object is refused without the name of a field', async () => {
    const create = gateway.gateway.keys.create(5 as never);
    await expect(create).rejects.toThrow(/^Invalid input: expected an object, not a number\.$/);
    await expect(create).rejects.toMatchObject({ code: 'invalid_value', param: null });
  });

  test('a query string of a holder’s list may have fields that the gateway does not know, one of an operator’s may not', async () => {
    for (const path of ['/keys', '/records'])
      expect((await askAdmin(gateway, 'GET', `${path}?limit=1&utm_source=x`)).status).toBe(400);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const own = await fetch(`${gateway.url}/v1/key/requests?limit=1&utm_source=x`, { headers });
    expect(own.status).toBe(200);
  });

  test('every method rejects after the end of the gateway, because it is closed', async () => {
    const { gateway: own } = gateway;
    await own.close();
    for (const call of [
      () => own.keys.create({ name: 'app' }),
      () => own.keys.list(),
      () => own.keys.groups(),
      () => own.records.list(),
      () => own.inFlight(),
      () => own.status(),
      () => own.cancel('req_none'),
    ] satisfies (() => Promise<unknown>)[])
      await expect(call()).rejects.toMatchObject({
        name: 'GatewayError',
        code: 'draining',
        status: 503,
        message: expect.stringMatching(/^This gateway is closed\./) as string,
      });
  });

  test('a wrong config is a ConfigError with every problem', () => {
    const wrong = { upstreams: { a: { url: 'demo:' } }, models: {}, severs: {} };
    expect(() => createGateway(wrong)).toThrow(ConfigError);
    expect(() => createGateway(wrong)).toThrow('severs');
  });
});
