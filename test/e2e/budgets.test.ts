import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

/** A thousand nano-USD for a token of input, and two thousand for one of output. */
const price = { input: '1', cacheWrite: '1', output: '2' };
/** What the scripted upstream's usage (11 in, 7 out) costs. */
const cost = '0.000025';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10 };

/** Noon in Berlin, on the day before clocks go back. */
const noonMs = Date.parse('2026-10-24T10:00:00Z');
const dayMs = 86_400_000;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let nowMs: number;
beforeEach(async () => {
  nowMs = noonMs;
  upstream = await startUpstream();
  upstream.play(sayTexts(['a ', 'b']));
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function start(options: TestGatewayOptions = {}): Promise<void> {
  const clock: Clock = { ...systemClock, now: () => nowMs };
  gateway = await startGateway({ upstreamUrl: upstream.url, price, clock, ...options });
}

const post = (secret: string, extra: object = {}, signal: AbortSignal | null = null): Promise<Response> =>
  gateway.post(
    '/v1/chat/completions',
    { ...body, ...extra },
    { headers: { authorization: `Bearer ${secret}` }, signal },
  );

interface Shown {
  readonly status: number;
  readonly body: {
    readonly id: string;
    readonly key: string;
    readonly budget: Record<string, unknown> | null;
  };
}

async function admin(method: string, path: string, sent?: object): Promise<Shown> {
  const response = await fetch(`${gateway.adminUrl}/admin/keys${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.adminToken}`, 'content-type': 'application/json' },
    ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
  });
  return { status: response.status, body: (await response.json()) as Shown['body'] };
}

async function own(secret: string): Promise<unknown> {
  const response = await fetch(`${gateway.url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } });
  return ((await response.json()) as { budget: unknown }).budget;
}

const daily = { amount: '0.00004', per: 'day', timeZone: 'Europe/Berlin', warnAt: ['0.5', '1'] };
const shown = {
  amount: '0.00004',
  per: 'day',
  time_zone: 'Europe/Berlin',
  warn_at: ['0.5', '1'],
  raise: null,
  available: '0.00004',
  held: '0.00',
  spent: '0.00',
  warned_at: null,
  since: '2026-10-23T22:00:00.000Z',
  refills_at: '2026-10-24T22:00:00.000Z',
};

test('a key that has spent its budget is refused with the time at which it is full again, and served then', async () => {
  await start();
  const { body: made } = await admin('POST', '', { name: 'bob', budget: daily });
  expect(made.budget).toEqual(shown);
  expect((await post(made.key)).status).toBe(200);
  const spent = { ...shown, spent: cost, available: '0.000015', warned_at: '0.5' };
  expect(await own(made.key)).toEqual(spent);
  expect((await admin('GET', `/${made.id}`)).body.budget).toEqual(spent);
  expect((await post(made.key)).status).toBe(200);

  const refused = await post(made.key);
  expect(refused.status).toBe(402);
  expect(await refused.json()).toEqual({
    error: {
      message: "This key's budget of 0.00004 USD is used up. It is full again at 2026-10-24T22:00:00.000Z.",
      type: 'insufficient_quota',
      param: null,
      code: 'budget_exhausted',
      budget: { source: 'key', amount: '0.00004', refills_at: '2026-10-24T22:00:00.000Z' },
    },
  });
  expect(refused.headers.get('retry-after')).toBe(String(12 * 3_600));
  expect(refused.headers.get('x-should-retry')).toBe('false');
  expect(upstream.seen).toHaveLength(2);

  nowMs = Date.parse('2026-10-24T21:59:59.999Z');
  expect((await post(made.key)).status).toBe(402);
  nowMs++;
  const tomorrow = { ...shown, since: '2026-10-24T22:00:00.000Z', refills_at: '2026-10-25T23:00:00.000Z' };
  expect(await own(made.key)).toEqual(tomorrow);
  expect((await post(made.key)).status).toBe(200);
  expect(await own(made.key)).toEqual({ ...tomorrow, spent: cost, available: '0.000015', warned_at: '0.5' });

  nowMs = noonMs;
  expect((await post(made.key)).status).toBe(200);
  expect(await own(made.key)).toMatchObject({ since: tomorrow.since, spent: '0.00005' });
});

test('a budget that running requests hold is worth a retry, and a request over midnight costs the new day nothing', async () => {
  await start();
  const { body: made } = await admin('POST', '', { name: 'bob', budget: daily });
  upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
  const leaving = new AbortController();
  const running = readLive(post(made.key, { stream: true, max_tokens: 1_000 }, leaving.signal));
  await eventually('the request is in progress', () => running.text !== '');
  expect(await own(made.key)).toMatchObject({ held: '0.00004', available: '0.00' });
  const refused = await post(made.key);
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual(
    [402, '1', null],
  );
  expect(await refused.json()).toMatchObject({ error: { code: 'budget_held' } });

  nowMs += dayMs;
  upstream.play(sayTexts(['a ', 'b']));
  expect((await post(made.key)).status).toBe(200);
  leaving.abort();
  await running.ended;
  await eventually(
    'the first request has ended',
    async () => (await admin('GET', `/${made.id}`)).body.budget?.['held'] === '0.00',
  );
  expect(await own(made.key)).toMatchObject({ spent: cost, held: '0.00', since: '2026-10-24T22:00:00.000Z' });
});

test('in strict mode a request that does not fit as a whole is refused, with what is spent', async () => {
  await start({ limits: { balanceMode: 'strict' } });
  const { body: made } = await admin('POST', '', { name: 'bob', budget: { ...daily, amount: '0.005' } });
  expect((await post(made.key)).status).toBe(200);
  const refused = await post(made.key, { max_tokens: 1_000 });
  expect(refused.status).toBe(402);
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'budget_exhausted',
      message:
        "Of this key's budget of 0.005 USD, 0.000025 USD are spent, and this request needs 0.006129 USD " +
        '(prompt 0.000033, answer up to 0.002, 0.004096 for what the upstream may add). ' +
        'It is full again at 2026-10-24T22:00:00.000Z.',
    },
  });
});

test('in strict mode an answer without usage is bound by its hold, which its receipt has, and the ledger explains it', async () => {
  await start({ limits: { balanceMode: 'strict' } });
  const { body: made } = await admin('POST', '', { name: 'bob', budget: { ...daily, amount: '0.005' } });
  const message = { role: 'assistant', content: 'word '.repeat(5_000) };
  const answer = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
  upstream.play((response) => sendJson(response, 200, answer));
  const served = await post(made.key);
  const receipt = await fetch(`${gateway.url}/v1/key/requests/${served.headers.get('x-request-id')}`, {
    headers: { authorization: `Bearer ${made.key}` },
  });
  const { hold, charge } = (await receipt.json()) as { hold: string; charge: string };
  expect(charge).toBe(hold);
  expect(await own(made.key)).toMatchObject({ spent: hold, held: '0.00' });
  const ledger = await fetch(`${gateway.adminUrl}/admin/ledger`, {
    headers: { authorization: `Bearer ${gateway.adminToken}` },
  });
  expect(await ledger.json()).toMatchObject({ faults: [] });
});

test('a raise adds to the budget until its time, and changes of some settings leave the others', async () => {
  await start();
  const { body: made } = await admin('POST', '', { name: 'bob', budget: { ...daily, amount: '0' } });
  expect((await post(made.key)).status).toBe(402);
  const raise = { amount: '1.00', until: '2026-10-24T11:00:00.000Z' };
  const raised = await admin('PATCH', `/${made.id}`, { budget: { raise } });
  expect(raised.body.budget).toEqual({ ...shown, amount: '0.00', available: '1.00', raise });
  expect((await post(made.key)).status).toBe(200);
  nowMs = Date.parse(raise.until);
  expect((await post(made.key)).status).toBe(402);
  expect((await admin('PATCH', `/${made.id}`, { budget: null })).body.budget).toBeNull();
  expect((await post(made.key)).status).toBe(200);
  const bare = await admin('PATCH', `/${made.id}`, { budget: { raise } });
  expect([bare.status, bare.body]).toMatchObject([
    400,
    { error: { code: 'invalid_value', param: 'budget' } },
  ]);
});

test.each([
  ['no amount', { per: 'day' }, 'budget.amount'],
  ['no period', { amount: '1' }, 'budget.per'],
  ['an unknown zone', { amount: '1', per: 'day', timeZone: 'Europe/Berlín' }, 'budget.timeZone'],
  ['a level above the whole', { amount: '1', per: 'day', warnAt: ['1.2'] }, 'budget.warnAt.0'],
  ['a level of nothing', { amount: '1', per: 'day', warnAt: ['0.000'] }, 'budget.warnAt.0'],
  ['too many levels', { amount: '1', per: 'day', warnAt: ['.1', '.2', '.3', '.4', '.5'] }, 'budget.warnAt'],
  ['a raise without an end', { amount: '1', per: 'day', raise: { amount: '1' } }, 'budget.raise.until'],
])('a budget with %s is refused by the admin API', async (_what, budget, param) => {
  await start();
  const { status, body: refused } = await admin('POST', '', { name: 'bob', budget });
  expect([status, refused]).toMatchObject([400, { error: { param } }]);
});

test('a key can be made with null where one is changed with it: without a budget, and with a budget without a raise', async () => {
  await start();
  const { body: free } = await admin('POST', '', { name: 'ann', budget: null });
  expect(free.budget).toBeNull();
  expect((await post(free.key)).status).toBe(200);
  const { body: bound } = await admin('POST', '', { name: 'bob', budget: { ...daily, raise: null } });
  expect(bound.budget).toEqual(shown);
});
