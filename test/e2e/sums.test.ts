import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const price = { input: '1', output: '2' };
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let file: string;
beforeEach(async () => {
  file = join(makeTemporaryFolder(), 'textgate.db');
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  gateway = await startGateway({ upstreamUrl: upstream.url, storage: file, price });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const admin = (method: string, path: string, sent?: object) => askAdmin(gateway, method, path, sent);

/** Gives an account sums: by default beyond 2^53, as two answers of 4e11 tokens each once did. */
async function makeOverfullKey(
  spent = 2n * 9_007_199_254_740_991n,
): Promise<{ id: string; headers: Record<string, string> }> {
  const compatibility = { usageCost: true };
  const settings = { balanceNanos: 1_000_000_000, compatibility };
  const { key, secret } = await gateway.gateway.createKey('overfull', settings);
  await gateway.close();
  const database = new DatabaseSync(file, { timeout: 5_000 });
  // What is spent of it was paid for, as far as a balance can be kept.
  const debt = spent < 9_007_199_254_740_991n ? 0n : spent;
  database
    .prepare('UPDATE accounts SET spent = ?, balance = balance - ? WHERE key_id = ?')
    .run(spent, debt, key.id);
  database.close();
  gateway = await startGateway({ upstreamUrl: upstream.url, storage: file, price });
  return { id: key.id, headers: { authorization: `Bearer ${secret}` } };
}

describe('an account with sums too large to be exact', () => {
  test('is listed, and so are all others', async () => {
    const { id, headers } = await makeOverfullKey();
    const shown = {
      balance: expect.stringMatching(/^-18014397\.5/),
      spent: expect.stringMatching(/^18014398\.5/),
    };
    const { data } = (await admin('GET', '/keys')).body;
    expect(data).toHaveLength(3);
    expect(data).toContainEqual(expect.objectContaining({ id, ...shown }));
    expect((await admin('GET', `/keys/${id}`)).body).toMatchObject(shown);
    const own = await fetch(`${gateway.url}/v1/key`, { headers });
    expect(await own.json()).toMatchObject({ id, ...shown });
  });

  test('is refused requests like one without money, accepts credits, and can be revoked', async () => {
    const { id, headers } = await makeOverfullKey();
    expect((await gateway.post('/v1/chat/completions', body, { headers })).status).toBe(402);
    const credit = await admin('POST', `/keys/${id}/credits`, { amount: '5', reference: 'a' });
    expect([credit.status, credit.body.booked]).toEqual([200, true]);
    expect((await admin('DELETE', `/keys/${id}`)).status).toBe(200);
  });

  test('is reported as its own fault by the verification of the ledger', async () => {
    const { id } = await makeOverfullKey();
    const { status, body: found } = await admin('GET', '/ledger');
    expect(status).toBe(200);
    expect(found.faults).toContain(`${id}: holds amounts that are too large to be exact`);
    expect(found.faults.every((fault: string) => fault.startsWith(id))).toBe(true);
  });
});

describe('the reference of a payment', () => {
  const words = ['spent before there was a balance', 'opening balance'];

  test.each(words)('may be %j, which the gateway does not use for its own bookings', async (reference) => {
    const { key, secret } = await gateway.gateway.createKey('later');
    await (
      await gateway.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } })
    ).text();
    const pay = () => admin('POST', `/keys/${key.id}/credits`, { amount: '5', reference });
    expect(await pay()).toMatchObject({ status: 200, body: { booked: true, balance: '5.00' } });
    expect(await pay()).toMatchObject({ status: 200, body: { booked: false, balance: '5.00' } });
    const { key: rich } = await gateway.gateway.createKey('rich', { balanceNanos: 5_000_000_000 });
    const second = await admin('POST', `/keys/${rich.id}/credits`, { amount: '5', reference });
    expect(second).toMatchObject({ status: 200, body: { booked: true, balance: '10.00' } });
    expect((await admin('GET', '/ledger')).body.faults).toEqual([]);
  });

  test('may not begin like the references of the gateway’s own bookings', async () => {
    const { key } = await gateway.gateway.createKey('x');
    for (const reference of ['textgate: spent before there was a balance', 'textgate:']) {
      const answer = await admin('POST', `/keys/${key.id}/credits`, { amount: '5', reference });
      expect(answer).toMatchObject({ status: 400, body: { error: { param: 'reference' } } });
    }
  });
});

test('a charge that is cut, because its key has spent as much as can be kept, is shown as its receipt has it', async () => {
  const { headers } = await makeOverfullKey(9_007_199_254_740_991n - 10n);
  const response = await gateway.post('/v1/chat/completions', body, { headers });
  expect(response.headers.get('x-textgate-charge')).toBe('0.00000001');
  expect(await response.json()).toMatchObject({ usage: { cost: 0.000_000_01 } });
  expect((await admin('GET', '/records?limit=1')).body.data[0]).toMatchObject({ charge: '0.00000001' });
});
