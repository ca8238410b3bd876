import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { ConfigInput } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A thousand nano-USD for a token of input, and two thousand for one of output. */
const price = { input: '1', cacheWrite: '1', output: '2' };
/** What the scripted upstream's usage (11 in, 7 out) costs. */
const cost = '0.000025';
const declaredKey = 'sk-Yq3vT9LmW0zKc7Rb1';
const researchBudget = {
  amount: '0.00004',
  per: 'month' as const,
  timeZone: 'Europe/Berlin',
  warnAt: ['0.5'],
};
const groups: NonNullable<ConfigInput['groups']> = {
  research: { concurrency: 2, budget: researchBudget },
  sales: { budget: { amount: '5', per: 'day' } },
  support: { concurrency: 1 },
};

/** Noon in Berlin. */
const nowMs = Date.parse('2026-10-24T10:00:00Z');

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
  const clock = { ...systemClock, now: () => nowMs };
  plant(declaredKey);
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    price,
    clock,
    groups,
    keys: { declared: { key: declaredKey, group: 'support' } },
  });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const admin = (method: string, path: string, body?: object) => askAdmin(gateway, method, path, body);

function ask(secret: string, extra: object = {}): Promise<Response> {
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10, ...extra };
  return gateway.post('/v1/chat/completions', body, { headers: { authorization: `Bearer ${secret}` } });
}

async function own(secret: string) {
  const response = await fetch(`${gateway.url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
  return (await response.json()) as { readonly budget: unknown; readonly group: unknown };
}

async function make(name: string, settings: object): Promise<{ readonly id: string; readonly key: string }> {
  const { status, body } = await admin('POST', '/keys', { name, ...settings });
  expect(status).toBe(201);
  plant(body.key);
  return body;
}

const research = {
  name: 'research',
  concurrency: 2,
  budget: {
    amount: '0.00004',
    per: 'month',
    time_zone: 'Europe/Berlin',
    warn_at: ['0.5'],
    raise: null,
    available: '0.00004',
    held: '0.00',
    spent: '0.00',
    warned_at: null,
    since: '2026-09-30T22:00:00.000Z',
    refills_at: '2026-10-31T23:00:00.000Z',
  },
  in_flight: 0,
};

describe('the groups of the config', () => {
  test('are listed by name, with what their keys have spent together and have in progress', async () => {
    const [ann, bob] = [
      await make('ann', { group: 'research' }),
      await make('bob', { group: 'research', budget: { amount: '1', per: 'day' } }),
    ];
    const { status, body } = await admin('GET', '/groups');
    expect(status).toBe(200);
    expect(body).toEqual({
      object: 'list',
      data: [
        research,
        expect.objectContaining({ name: 'sales', concurrency: null, in_flight: 0 }),
        { name: 'support', concurrency: 1, budget: null, in_flight: 0 },
      ],
      next: null,
    });

    expect((await ask(ann.key)).status).toBe(200);
    const spent = {
      ...research,
      budget: { ...research.budget, spent: cost, available: '0.000015', warned_at: '0.5' },
    };
    expect((await admin('GET', '/groups')).body.data[0]).toEqual(spent);
    expect((await own(bob.key)).group).toEqual(spent);

    upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
    const running = readLive(ask(bob.key, { stream: true }));
    await eventually('the request is in progress', () => running.text !== '');
    expect((await admin('GET', '/groups')).body.data[0]).toMatchObject({
      budget: { held: '0.000015', available: '0.00' },
      in_flight: 1,
    });
    expect((await own(ann.key)).group).toMatchObject({ in_flight: 1 });
    await gateway.gateway.cancel(String((await gateway.gateway.inFlight()).data[0]?.request_id));
    await running.ended;
    await eventually(
      'its slot is free',
      async () => (await admin('GET', '/groups')).body.data[0].in_flight === 0,
    );
  });

  test('are listed from code as the admin API lists them', async () => {
    const { body } = await admin('GET', '/groups');
    expect(await gateway.gateway.keys.groups()).toEqual(body);
  });

  test('can only be read', async () => {
    const { status, headers } = await admin('POST', '/groups', { name: 'x' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET']);
    expect((await fetch(`${gateway.adminUrl}/admin/groups`)).status).toBe(401);
  });
});

describe('a refusal by a group', () => {
  test('is a 402 that names the budget of the group, whichever of its keys has spent it', async () => {
    const [ann, bob] = [await make('ann', { group: 'research' }), await make('bob', { group: 'research' })];
    for (let request = 0; request < 2; request++) expect((await ask(ann.key)).status).toBe(200);
    const refused = await ask(bob.key);
    expect(refused.status).toBe(402);
    expect(await refused.json()).toEqual({
      error: {
        message:
          "The budget of the group 'research' of 0.00004 USD is used up. It is full again at 2026-10-31T23:00:00.000Z.",
        type: 'insufficient_quota',
        param: null,
        code: 'budget_exhausted',
        budget: { source: 'group', amount: '0.00004', refills_at: '2026-10-31T23:00:00.000Z' },
      },
    });
    expect(refused.headers.get('retry-after')).toBe(String(7.5 * 86_400 + 3_600));
  });

  test('is a 429 that names the slots of the group, and counts no start of the key', async () => {
    const [ann, bob] = [
      await make('ann', { group: 'support' }),
      await make('bob', { group: 'support', requestsPerMinute: 1 }),
    ];
    upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
    const running = readLive(ask(ann.key, { stream: true }));
    await eventually('the request is in progress', () => running.text !== '');
    const refused = await ask(bob.key);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'concurrency_limit_exceeded',
        limit: { source: 'group', kind: 'concurrency', limit: 1, in_flight: 1 },
      },
    });
    await gateway.gateway.cancel(String((await gateway.gateway.inFlight()).data[0]?.request_id));
    await running.ended;
    upstream.play(sayTexts(['a']));
    await eventually(
      'there is a slot',
      async () => (await admin('GET', '/groups')).body.data[2].in_flight === 0,
    );
    expect((await ask(bob.key)).status).toBe(200);
    expect(await (await ask(bob.key)).json()).toMatchObject({
      error: { limit: { source: 'key', kind: 'rate' } },
    });
    expect((await admin('GET', '/groups')).body.data[2].in_flight).toBe(0);
    expect((await ask(ann.key)).status).toBe(200);
  });
});

describe('the group of a key', () => {
  test('is set, changed and taken away by the admin API, and its holder sees it', async () => {
    const { id, key } = await make('bob', { group: 'sales' });
    expect((await admin('GET', `/keys/${id}`)).body.group).toBe('sales');
    expect(await own(key)).toMatchObject({ group: { name: 'sales', budget: { amount: '5.00' } } });
    expect((await admin('PATCH', `/keys/${id}`, { group: 'support' })).body.group).toBe('support');
    expect((await own(key)).group).toEqual({ name: 'support', concurrency: 1, budget: null, in_flight: 0 });
    expect((await admin('PATCH', `/keys/${id}`, { concurrency: 5 })).body.group).toBe('support');
    expect((await admin('PATCH', `/keys/${id}`, { group: null })).body.group).toBeNull();
    expect((await own(key)).group).toBeNull();
    expect((await admin('POST', '/keys', { name: 'eve', group: null })).body.group).toBeNull();
  });

  test.each([
    ['reserch', "the config has no group 'reserch': it has research, sales, support."],
    ['none', "no group is named 'none': write null for no group."],
    ['', 'expected letters, digits and . _ -'],
    ['-x', 'expected letters, digits and . _ -'],
    ['x'.repeat(65), 'expected 64 characters or less'],
    [7, 'expected a text'],
  ])('is refused as %j, when a key is made and when one is changed', async (group, reason) => {
    const { id } = await make('bob', {});
    for (const { status, body } of [
      await admin('POST', '/keys', { name: 'eve', group }),
      await admin('PATCH', `/keys/${id}`, { group, concurrency: 9 }),
    ]) {
      expect([status, body]).toMatchObject([400, { error: { code: 'invalid_value', param: 'group' } }]);
      expect(body.error.message).toContain(reason);
    }
    expect((await admin('GET', `/keys/${id}`)).body).toMatchObject({
      group: null,
      limits: { concurrency: 2 },
    });
  });

  test('is that of the config where the key is declared', async () => {
    expect(await own(declaredKey)).toMatchObject({ group: { name: 'support' } });
    const found = (await admin('GET', '/keys')).body.data.find(
      ({ name }: { name: string }) => name === 'declared',
    );
    expect(found).toMatchObject({ group: 'support', declared: true });
    const { status, body } = await admin('PATCH', `/keys/${found.id}`, { group: 'sales' });
    expect([status, body]).toMatchObject([409, { error: { code: 'key_is_declared' } }]);
  });
});

describe('a reloaded config', () => {
  const config = (changed: ConfigInput['groups']): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: gateway.adminToken },
    storage: { url: 'sqlite::memory:', durability: 'normal' },
    upstreams: { local: { url: upstream.url, apiKey: 'sk-upstream-secret' } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], price } },
    groups: changed,
  });

  test('changes the limits of a group for new requests, and what is spent stays spent', async () => {
    const { key } = await make('bob', { group: 'research' });
    for (let request = 0; request < 2; request++) expect((await ask(key)).status).toBe(200);
    expect((await ask(key)).status).toBe(402);
    const budget = { ...researchBudget, amount: '1' };
    expect(gateway.gateway.reload(config({ ...groups, research: { concurrency: 7, budget } }))).toEqual([]);
    expect((await ask(key)).status).toBe(200);
    expect((await own(key)).group).toMatchObject({
      concurrency: 7,
      budget: { amount: '1.00', spent: '0.000075', warned_at: null },
    });
  });

  test('without the group of a key refuses its requests, and names the group, until the key is taken out of it', async () => {
    const { id, key } = await make('bob', { group: 'research' });
    gateway.gateway.reload(config({}));
    const refused = await ask(key);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: {
        code: 'group_not_configured',
        message: expect.stringContaining("'research', which is not in the config"),
      },
    });
    expect(upstream.seen).toHaveLength(0);
    expect((await admin('GET', `/keys/${id}`)).body.group).toBe('research');
    expect((await own(key)).group).toBeNull();
    const { body } = await admin('PATCH', `/keys/${id}`, { group: 'research' });
    expect(body.error.message).toContain("the config has no group 'research': it has none.");
    expect((await admin('PATCH', `/keys/${id}`, { group: null })).status).toBe(200);
    expect((await ask(key)).status).toBe(200);
  });

  test('that takes away the group of a declared key is refused, and the one before stays in force', () => {
    const keys = { declared: { key: declaredKey, group: 'support' } };
    expect(() => gateway.gateway.reload({ ...config({ sales: {} }), keys })).toThrow(
      'keys.declared.group: no group has this name; known names: sales',
    );
  });
});
