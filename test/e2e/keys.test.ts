import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  clock = createFakeClock();
  upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    clock,
    price: { input: '1', output: '2' },
    otherModel: 'large',
  });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const admin = (method: string, path: string, sent?: object) =>
  askAdmin(gateway, method, `/keys${path}`, sent);
const ask = (secret: string, extra: object = {}, signal: AbortSignal | null = null) =>
  gateway.post(
    '/v1/chat/completions',
    { ...body, ...extra },
    { headers: { authorization: `Bearer ${secret}` }, signal },
  );
const read = async (secret: string, path: string, method = 'GET') => {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${secret}` },
  });
  // eslint-disable-next-line typescript/no-explicit-any -- what a test reads is checked by what it expects
  return { status: response.status, body: (await response.json()) as any };
};

/** The answer to every kind of wrong key. */
async function expectUnknown(secret: string): Promise<void> {
  const response = await ask(secret);
  expect(response.status).toBe(401);
  expect(await response.json()).toMatchObject({ error: { code: 'invalid_api_key' } });
}

describe('a key', () => {
  test('is created with its own settings, read and changed; its secret is shown once', async () => {
    const settings = {
      name: 'bob',
      concurrency: 7,
      tokensPerMinute: 1_000,
      queueWait: '250ms',
      weight: 7,
      joinRetries: '10s',
      models: ['small'],
      expiresAt: '2030-01-01T00:00:00Z',
      compatibility: { sampling: 'strict' },
    };
    const made = await admin('POST', '', settings);
    expect(made.status).toBe(201);
    const { key, id, ...shown } = made.body;
    expect(key).toMatch(/^sk-tg-/);
    expect(shown).toMatchObject({
      name: 'bob',
      limits: {
        concurrency: 7,
        requests_per_minute: 60,
        queue_wait_ms: 250,
        tokens_per_minute: 1_000,
        tokens_per_day: null,
      },
      models: ['small'],
      expires_at: '2030-01-01T00:00:00.000Z',
      revoked_at: null,
      balance: null,
      held: '0.00',
      spent: '0.00',
      in_flight: 0,
      weight: 7,
      join_retries_ms: 10_000,
      compatibility: { sampling: 'strict', unknown_fields: 'reject' },
    });
    expect((await admin('GET', `/${id}`)).body).toEqual({ id, ...shown });

    const taken = {
      concurrency: null,
      tokensPerMinute: null,
      queueWait: null,
      weight: null,
      joinRetries: null,
      models: null,
      expiresAt: null,
    };
    const changes = { name: 'Bob', requestsPerMinute: 9, ...taken };
    const changed = await admin('PATCH', `/${id}`, changes);
    expect(changed.body).toMatchObject({
      name: 'Bob',
      limits: { concurrency: 2, requests_per_minute: 9, queue_wait_ms: 0, tokens_per_minute: null },
      models: null,
      expires_at: null,
      weight: 1,
      join_retries_ms: null,
      compatibility: { sampling: 'strict' },
    });
    expect((await admin('GET', `/${id}`)).body).toEqual(changed.body);
  });

  test.each([
    [{ concurrency: 0 }, 'concurrency'],
    [{ models: [] }, 'models'],
    [{ expiresAt: 'soon' }, 'expiresAt'],
    [{ surprise: 1 }, 'surprise'],
    [{ balance: '5' }, 'balance'],
    [{ queueWait: 'long' }, 'queueWait'],
    [{ queueWait: '600h' }, 'queueWait'],
    [{ weight: 0 }, 'weight'],
    [{ weight: 1_001 }, 'weight'],
    [{ joinRetries: 10 }, 'joinRetries'],
    [{ joinRetries: '999ms' }, 'joinRetries'],
    [{ joinRetries: '61s' }, 'joinRetries'],
  ])('is not changed by %j', async (changes, param) => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    const refused = await admin('PATCH', `/${made.id}`, changes);
    expect(refused).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test.each([
    [{ models: ['smal'] }, "Invalid 'models.0': no model has this name; did you mean 'small'?"],
    [{ models: ['small', 'gpt'] }, "Invalid 'models.1': no model has this name; known names: small, large."],
    [
      { models: ['sma*'] },
      "Invalid 'models.0': expected the name of one model: patterns with * are not read here.",
    ],
    [
      { expiresAt: '1969-12-31T00:00:00Z' },
      "Invalid 'expiresAt': expected a time to come (a day begins at midnight UTC). To end a key now, revoke it.",
    ],
  ])(
    'is neither made nor changed with what would have all its requests refused: %j',
    async (setting, words) => {
      const { body: made } = await admin('POST', '', { name: 'x' });
      for (const refused of [
        await admin('POST', '', { name: 'y', ...setting }),
        await admin('PATCH', `/${made.id}`, setting),
      ])
        expect(refused).toMatchObject({
          status: 400,
          body: { error: { code: 'invalid_value', message: words } },
        });
    },
  );

  test('may keep an end that has passed meanwhile', async () => {
    const expiresAt = new Date(clock.now() + 60_000).toISOString();
    const { body: made } = await admin('POST', '', { name: 'x', expiresAt });
    clock.advance(120_000);
    expect(await admin('PATCH', `/${made.id}`, { expiresAt, name: 'z' })).toMatchObject({
      status: 200,
    });
  });

  test.each([
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
  ])('is not found for %s %s when it does not exist', async (method, path) => {
    const answer = await admin(method, `/key_nobody${path}`, method === 'GET' ? undefined : {});
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'key_not_found' } } });
  });

  test('keeps both of two simultaneous changes, 30 times', async () => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    for (let round = 1; round <= 30; round++) {
      const changes = [
        { name: `name ${round}`, compatibility: { sampling: round % 2 === 0 ? 'strip' : 'strict' } },
        { concurrency: round, compatibility: { responsesDone: round % 2 === 0 } },
      ];
      const answers = await Promise.all(changes.map((change) => admin('PATCH', `/${made.id}`, change)));
      expect(answers[0]?.body).toMatchObject({ name: `name ${round}` });
      expect(answers[1]?.body).toMatchObject({ limits: { concurrency: round } });
      expect((await admin('GET', `/${made.id}`)).body).toMatchObject({
        name: `name ${round}`,
        limits: { concurrency: round },
        compatibility: {
          sampling: round % 2 === 0 ? 'strip' : 'strict',
          unknown_fields: 'reject',
          responses_done: round % 2 === 0,
        },
      });
    }
  });

  test('is unchanged by an empty change', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', concurrency: 3 });
    const { key: _secret, ...shown } = made;
    expect(await admin('PATCH', `/${made.id}`, {})).toMatchObject({ status: 200, body: shown });
  });

  test('has its new limits on the first request after a change', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', requestsPerMinute: 1 });
    expect((await ask(made.key)).status).toBe(200);
    expect((await ask(made.key)).status).toBe(429);
    await admin('PATCH', `/${made.id}`, { requestsPerMinute: 5 });
    expect((await ask(made.key)).status).toBe(200);
  });

  test('is refused on the first request after its revocation, but its running request completes', async () => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    const frames = chatFrames(['one ', 'two']);
    const finish = Promise.withResolvers<() => void>();
    upstream.play((response) => {
      sendStream(response, frames.slice(0, 2));
      finish.resolve(() => response.end(frames.slice(2).join('')));
    });
    const running = readLive(ask(made.key, { stream: true }));
    await eventually('the request is in progress', () => running.text.includes('one '));
    const revoked = await admin('DELETE', `/${made.id}`);
    expect(revoked.body).toMatchObject({ revoked_at: new Date(clock.now()).toISOString(), in_flight: 1 });
    await expectUnknown(made.key);
    (await finish.promise)();
    await running.ended;
    expect(running.text).toMatch(/two[^]*\[DONE\]/);
    clock.advance(1_000);
    expect((await admin('DELETE', `/${made.id}`)).body.revoked_at).toBe(revoked.body.revoked_at);
  });

  test('is refused after its expiry, even while it is cached', async () => {
    const expiresAt = new Date(clock.now() + 5_000).toISOString();
    const { body: made } = await admin('POST', '', { name: 'x', expiresAt });
    expect((await ask(made.key)).status).toBe(200);
    clock.advance(5_000);
    await expectUnknown(made.key);
  });

  test('has a new secret with the same key id after a rotation; the old secret is valid for the grace period', async () => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    const { body: rotated } = await admin('POST', `/${made.id}/rotate`, { grace: '1h' });
    expect(rotated.id).toBe(made.id);
    expect(rotated.key).not.toBe(made.key);
    expect(rotated.key.slice(0, 18)).toBe(made.key.slice(0, 18));
    expect((await ask(rotated.key)).status).toBe(200);
    expect((await ask(made.key)).status).toBe(200);
    clock.advance(3_600_000);
    await expectUnknown(made.key);
    expect((await ask(rotated.key)).status).toBe(200);
    const { body: again } = await admin('POST', `/${made.id}/rotate`, {});
    await expectUnknown(rotated.key);
    expect((await ask(again.key)).status).toBe(200);
  });

  test('has only its newest secret after a second rotation without a grace period', async () => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    const { body: second } = await admin('POST', `/${made.id}/rotate`, { grace: '1h' });
    const { body: third } = await admin('POST', `/${made.id}/rotate`, {});
    await expectUnknown(made.key);
    await expectUnknown(second.key);
    expect((await ask(third.key)).status).toBe(200);
  });

  test.each(['999999999d', '600h', 'soon'])('is not rotated with a grace period of %s', async (grace) => {
    const { body: made } = await admin('POST', '', { name: 'x' });
    const refused = await admin('POST', `/${made.id}/rotate`, { grace });
    expect(refused).toMatchObject({ status: 400, body: { error: { param: 'grace' } } });
    expect((await ask(made.key)).status).toBe(200);
  });

  test('with a list of models can neither use nor list other models', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', models: ['large'] });
    const refused = await ask(made.key);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: { code: 'model_not_allowed', param: 'model' },
    });
    expect((await read(made.key, '/v1/models')).body.data).toMatchObject([{ id: 'large' }]);
    expect((await read(made.key, '/v1/models/small')).status).toBe(403);
    await admin('PATCH', `/${made.id}`, { models: ['small'] });
    expect((await read(made.key, '/v1/models')).body.data).toHaveLength(1);
    expect((await ask(made.key)).status).toBe(200);
  });
});

describe('the holder of a key', () => {
  test('reads the key, its requests in pages, and the receipt of each', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', balance: '1.00' });
    const ids: (string | null)[] = [];
    for (let round = 0; round < 5; round++) {
      const response = await ask(made.key);
      ids.unshift(response.headers.get('x-request-id'));
      await response.text();
      clock.advance(1_000);
    }
    expect((await read(made.key, '/v1/key')).body).toMatchObject({
      id: made.id,
      balance: '0.999875',
      held: '0.00',
      spent: '0.000125',
      in_flight: 0,
    });
    const first = await read(made.key, '/v1/key/requests?limit=3');
    const second = await read(made.key, `/v1/key/requests?limit=3&before=${first.body.next}`);
    const listed = [...first.body.data, ...second.body.data].map(({ request_id: id }) => id);
    expect(listed).toEqual(ids);
    expect(second.body.next).toBeNull();

    const receipt = await read(made.key, `/v1/key/requests/${ids[0]}`);
    expect(receipt.body).toEqual(first.body.data[0]);
    expect(receipt.body).toMatchObject({
      request_id: ids[0],
      key_id: made.id,
      protocol: 'chat',
      mode: 'sync',
      model: 'small',
      upstream: 'local',
      outcome: 'completed',
      status: 200,
      usage: {
        input_tokens: 11,
        cached_input_tokens: 0,
        output_tokens: 7,
        reasoning_tokens: 0,
        total_tokens: 18,
      },
      usage_source: 'upstream',
      price: { input: '1.00', cached_input: '1.00', output: '2.00' },
      charge: '0.000025',
    });
  });

  test('reads nothing of another key', async () => {
    const { body: mine } = await admin('POST', '', { name: 'mine' });
    const { body: other } = await admin('POST', '', { name: 'other' });
    const id = (await ask(mine.key)).headers.get('x-request-id');
    expect((await read(other.key, `/v1/key/requests/${id}`)).status).toBe(404);
    expect((await read(other.key, '/v1/key/requests')).body.data).toEqual([]);
    expect((await read(other.key, `/v1/key/requests/${id}/cancel`, 'POST')).body).toMatchObject({
      error: { code: 'request_not_found' },
    });
    expect((await fetch(`${gateway.url}/v1/key`)).status).toBe(401);
  });

  test('reads as in progress only requests with a slot, not those waiting for one', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', concurrency: 1, queueWait: '1h' });
    upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const leaving = new AbortController();
    const running = readLive(ask(made.key, { stream: true }, leaving.signal));
    await eventually('the request is in progress', () => running.text.includes('one '));
    const waiting = ask(made.key, {}, leaving.signal);
    await eventually('another request waits', async () => {
      const { data } = (await askAdmin(gateway, 'GET', '/in-flight')).body;
      return data.length === 2;
    });
    expect((await read(made.key, '/v1/key')).body).toMatchObject({ in_flight: 1 });
    leaving.abort();
    await expect(waiting).rejects.toThrow('abort');
    await running.ended;
  });

  test('cancels a request of the key, and its slot is free', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', concurrency: 1 });
    upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const running = readLive(ask(made.key, { stream: true }));
    await eventually('the request is in progress', () => running.text.includes('one '));
    expect((await ask(made.key)).status).toBe(429);
    const [{ request_id: id }] = (await read(made.key, '/v1/key/requests')).body.data;
    expect((await read(made.key, `/v1/key/requests/${id}`)).body).toMatchObject({ outcome: null });
    expect((await read(made.key, `/v1/key/requests/${id}/cancel`, 'POST')).status).toBe(200);
    await running.ended;
    expect(running.text).not.toContain('[DONE]');
    expect(running.broken).toBe(true);
    expect((await read(made.key, `/v1/key/requests/${id}`)).body).toMatchObject({ outcome: 'cancelled' });
    upstream.play(sayTexts(['x']));
    expect((await ask(made.key)).status).toBe(200);
    expect((await read(made.key, `/v1/key/requests/${id}/cancel`, 'POST')).status).toBe(404);
  });
});

describe('the operator', () => {
  const records = (query: string, headers = {}) =>
    askAdmin(gateway, 'GET', `/records?${query}`, undefined, headers);

  test('reads the records by key, model, time and page, as JSON and as CSV', async () => {
    const { body: one } = await admin('POST', '', { name: 'one' });
    const { body: two } = await admin('POST', '', { name: 'two' });
    const began = clock.now();
    for (const { key } of [one, two, one]) {
      await (await ask(key)).text();
      clock.advance(60_000);
    }
    expect((await records('')).body.data).toHaveLength(3);
    expect((await records(`key=${one.id}`)).body.data).toHaveLength(2);
    expect((await records('model=small&limit=2')).body.next).toMatch(/^req_/);
    expect((await records('model=large')).body.data).toEqual([]);
    const from = new Date(began + 60_000).toISOString();
    const to = new Date(began + 120_000).toISOString();
    const middle = await records(`from=${from}&to=${to}`);
    expect(middle.body.data).toMatchObject([{ key_id: two.id }]);
    const csv = await records(`key=${one.id}&limit=1`, { accept: 'text/csv' });
    expect(csv.headers.get('content-type')).toContain('text/csv');
    const [head, row, rest] = csv.text.split('\r\n');
    expect(head).toMatch(/^request_id,key_id,created_at,.*,charge,/);
    expect(row).toMatch(new RegExp(`^req_\\w+,${one.id},.*,0\\.000025,`));
    expect(rest).toBe('');
    expect(csv.headers.get('x-textgate-next')).toMatch(/^req_/);
    expect((await records('from=yesterday')).status).toBe(400);
  });

  test('lists running requests, and cancels one of them', async () => {
    upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const running = readLive(ask(gateway.key, { stream: true }));
    await eventually('the request is in progress', () => running.text.includes('one '));
    const { body: seen } = await askAdmin(gateway, 'GET', '/in-flight');
    expect(seen.data).toMatchObject([{ model: 'small', mode: 'stream', protocol: 'chat' }]);
    const [{ request_id: id }] = seen.data;
    expect((await askAdmin(gateway, 'POST', `/in-flight/${id}/cancel`)).status).toBe(200);
    await running.ended;
    expect((await askAdmin(gateway, 'GET', '/in-flight')).body.data).toEqual([]);
    expect((await askAdmin(gateway, 'POST', `/in-flight/${id}/cancel`)).status).toBe(404);
  });

  test('verifies the ledger', async () => {
    const { body: made } = await admin('POST', '', { name: 'x', balance: '1.00' });
    for (let round = 0; round < 3; round++) await (await ask(made.key)).text();
    expect((await askAdmin(gateway, 'GET', '/ledger')).body).toMatchObject({
      records: 3,
      imbalanceNanos: 0,
      faults: [],
    });
  });
});
