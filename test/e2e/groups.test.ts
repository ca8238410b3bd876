import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { holdAnswers } from '../support/held-answers.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

/** The scripted upstream's usage (11 in, 7 out) costs 0.000025 USD. */
const price = { input: '1', cacheWrite: '1', output: '2' };
const token = 'an-admin-token-for-tests';
const secrets = {
  one: 'the-first-declared-key-of-these-tests',
  two: 'the-second-declared-key-of-these-tests',
};

let upstream: ScriptedUpstream;
let gateway: Gateway;
let clock: FakeClock;
let url: string;
let adminUrl: string;
let answer: () => void;

beforeEach(async () => {
  upstream = await startUpstream();
  clock = createFakeClock();
  answer = holdAnswers(upstream);
});
afterEach(async () => {
  answer();
  await gateway.close();
  await upstream.close();
});

type GroupsInput = NonNullable<ConfigInput['groups']>;
type KeysInput = NonNullable<ConfigInput['keys']>;

function configOf(
  groups: GroupsInput,
  {
    one = {},
    two = {},
  }: { readonly one?: Partial<KeysInput[string]>; readonly two?: Partial<KeysInput[string]> } = {},
): ConfigInput {
  return {
    server: { port: 0 },
    admin: { port: 0, token },
    storage: { url: 'sqlite::memory:' },
    groups,
    keys: {
      one: { key: secrets.one, group: 'research', ...one },
      two: { key: secrets.two, group: 'research', ...two },
    },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'm' }], price } },
  };
}

async function start(...config: Parameters<typeof configOf>): Promise<void> {
  gateway = createGateway(configOf(...config), { logLevel: 'silent', clock });
  ({ url, adminUrl } = await gateway.listen());
}

const ask = (who: keyof typeof secrets, signal: AbortSignal | null = null): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secrets[who]}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10 }),
    signal,
  });

const running = (count: number): Promise<void> =>
  eventually(`${count} run`, () => upstream.running === count);

/** Resolves when so many requests are in progress, those included that wait. */
const present = (count: number): Promise<void> =>
  eventually(`${count} are in progress`, async () => (await gateway.inFlight()).data.length === count);

/** What the admin API shows of the group `research`, or of another one. */
async function shown(name = 'research'): Promise<Record<string, unknown> | undefined> {
  const response = await fetch(`${adminUrl}/admin/groups`, { headers: { authorization: `Bearer ${token}` } });
  const { data } = (await response.json()) as { data: readonly Record<string, unknown>[] };
  return data.find((group) => group['name'] === name);
}

async function errorOf(response: Response): Promise<[number, Record<string, unknown>]> {
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  return [response.status, error];
}

describe('the slots of a group', () => {
  test('are those of all its keys together; a request that finds none says so, and counts no start of its key', async () => {
    await start({ research: { concurrency: 2 } }, { two: { requestsPerMinute: 1 } });
    const first = [ask('one'), ask('one')];
    await running(2);
    expect(await shown()).toMatchObject({ concurrency: 2, in_flight: 2, budget: null });
    for (let count = 0; count < 3; count++) {
      const [status, error] = await errorOf(await ask('two'));
      expect([status, error['code']]).toEqual([429, 'concurrency_limit_exceeded']);
      expect(error['limit']).toMatchObject({ source: 'group', kind: 'concurrency', limit: 2, in_flight: 2 });
      expect(error['message']).toContain("the group 'research'");
    }
    expect((await gateway.inFlight()).data).toHaveLength(2);
    answer();
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
    expect(await shown()).toMatchObject({ in_flight: 0 });
    expect((await ask('two')).status).toBe(200);
    expect((await ask('two')).status).toBe(429);
    expect(await shown()).toMatchObject({ in_flight: 0 });
  });

  test('are none of a request that waits: it gets its turn when one is free', async () => {
    await start({ research: { concurrency: 1 } }, { two: { queueWait: '60s', concurrency: 5 } });
    const first = ask('one');
    await running(1);
    const waiting = [ask('two'), ask('two')];
    await present(3);
    expect(await shown()).toMatchObject({ in_flight: 1 });
    answer();
    expect((await first).status).toBe(200);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    expect(upstream.seen).toHaveLength(3);
    expect(await shown()).toMatchObject({ in_flight: 0 });
  });

  test('are left to other keys by a request that waits for a slot of its own key', async () => {
    await start({ research: { concurrency: 2 } }, { one: { queueWait: '60s', concurrency: 1 } });
    const first = ask('one');
    await running(1);
    const waiting = ask('one');
    await present(2);
    expect(await shown()).toMatchObject({ in_flight: 1 });
    const other = ask('two');
    await running(2);
    answer();
    expect((await Promise.all([first, waiting, other])).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await shown()).toMatchObject({ in_flight: 0 });
  });

  test('are refused when the time of a request that waits is up, and its key has its own slot again', async () => {
    await start({ research: { concurrency: 1 } }, { two: { queueWait: '60s', concurrency: 1 } });
    const first = ask('one');
    await running(1);
    const waiting = ask('two');
    await present(2);
    clock.advance(60_000);
    const [status, error] = await errorOf(await waiting);
    expect([status, error['limit']]).toMatchObject([429, { source: 'group', limit: 1, in_flight: 1 }]);
    answer();
    expect((await first).status).toBe(200);
    expect((await ask('two')).status).toBe(200);
  });

  test('are all free, those of the keys too, when a client leaves that waited for one', async () => {
    await start({ research: { concurrency: 1 } }, { two: { queueWait: '60s', concurrency: 1 } });
    const first = ask('one');
    await running(1);
    const leaving = new AbortController();
    const left = ask('two', leaving.signal);
    await present(2);
    leaving.abort();
    await expect(left).rejects.toThrow(/abort/);
    await present(1);
    answer();
    expect((await first).status).toBe(200);
    expect(await shown()).toMatchObject({ in_flight: 0 });
    expect((await ask('two')).status).toBe(200);
    expect(upstream.seen).toHaveLength(2);
  });

  test('are not waited for any more when the gateway drains', async () => {
    await start({ research: { concurrency: 1 } }, { two: { queueWait: '60s' } });
    const first = ask('one');
    await running(1);
    const waiting = ask('two');
    await present(2);
    const closed = gateway.close();
    const [status, error] = await errorOf(await waiting);
    expect([status, error['code']]).toEqual([503, 'draining']);
    answer();
    expect((await first).status).toBe(200);
    await closed;
  });
});

describe('a reload of the config while a request waits for its group', () => {
  /** A request runs, and another one waits for the only slot of the group `research`. */
  async function startWaiting(): Promise<{ first: Promise<Response>; waiting: Promise<Response> }> {
    await start({ research: { concurrency: 1 } }, { two: { queueWait: '10m' } });
    const first = ask('one');
    await running(1);
    const waiting = ask('two');
    await present(2);
    return { first, waiting };
  }

  test.each([
    ['has more slots', { concurrency: 2 }],
    ['has no limit any more', {}],
  ])('serves it at once when the group %s', async (_how, research) => {
    const { first, waiting } = await startWaiting();
    gateway.reload(configOf({ research }, { two: { queueWait: '10m' } }));
    await running(2);
    answer();
    expect((await Promise.all([first, waiting])).map(({ status }) => status)).toEqual([200, 200]);
    expect(await shown()).toMatchObject({ in_flight: 0 });
  });

  test('serves it by its key’s new group, whose slots it takes', async () => {
    const { first, waiting } = await startWaiting();
    const groups = {
      research: { concurrency: 1 },
      later: { concurrency: 1, budget: { amount: '1', per: 'day' } },
    } as const;
    gateway.reload(configOf(groups, { two: { queueWait: '10m', group: 'later' } }));
    answer();
    expect((await Promise.all([first, waiting])).map(({ status }) => status)).toEqual([200, 200]);
    expect(await shown('later')).toMatchObject({ in_flight: 0, budget: { spent: '0.000025' } });
    expect(await shown()).toMatchObject({ in_flight: 0 });
  });

  test('refuses it where its key’s new group is full', async () => {
    const { first, waiting } = await startWaiting();
    const groups = { research: { concurrency: 2 }, later: { concurrency: 1 } };
    gateway.reload(configOf({ ...groups, research: { concurrency: 1 } }, { one: { group: 'later' } }));
    const other = ask('one');
    await running(2);
    gateway.reload(configOf(groups, { one: { group: 'later' }, two: { group: 'later' } }));
    const [status, error] = await errorOf(await waiting);
    expect([status, error['limit']]).toMatchObject([429, { source: 'group', limit: 1, in_flight: 1 }]);
    expect(await shown()).toMatchObject({ in_flight: 1 });
    answer();
    expect((await Promise.all([first, other])).map((response) => response.status)).toEqual([200, 200]);
  });

  test('refuses it where its key’s group is not in the config any more', async () => {
    await start({ research: { concurrency: 1 } });
    const { key, id } = await gateway.keys.create({ name: 'issued', group: 'research', queueWait: '10m' });
    const first = ask('one');
    await running(1);
    const waiting = fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] }),
    });
    await present(2);
    const { groups: _groups, keys: _keys, ...others } = configOf({});
    gateway.reload(others);
    answer();
    expect((await first).status).toBe(200);
    const [status, error] = await errorOf(await waiting);
    expect([status, error['code']]).toEqual([403, 'group_not_configured']);
    expect(await gateway.keys.get(id)).toMatchObject({ in_flight: 0, group: 'research' });
    expect(upstream.seen).toHaveLength(1);
  });
});

describe('the budget of a group', () => {
  test('refuses the requests of all its keys once it is spent, and says that it is that of the group', async () => {
    await start({ research: { budget: { amount: '0.00003', per: 'month' } } });
    answer();
    expect((await ask('one')).status).toBe(200);
    expect((await ask('two')).status).toBe(200);
    for (const who of ['one', 'two'] as const) {
      const [status, error] = await errorOf(await ask(who));
      expect([status, error['code']]).toEqual([402, 'budget_exhausted']);
      expect(error['budget']).toMatchObject({ source: 'group', amount: '0.00003' });
      expect(error['message']).toContain("The budget of the group 'research' of 0.00003 USD is used up.");
    }
    expect(await shown()).toMatchObject({ budget: { spent: '0.00005', held: '0.00' } });
    expect(upstream.seen).toHaveLength(2);
  });

  test('refuses a key with a budget of its own by the one that is without for the longest time', async () => {
    const own = { amount: '0.00001', per: 'day' } as const;
    await start({ research: { budget: { amount: '0.00001', per: 'month' } } }, { one: { budget: own } });
    answer();
    expect((await ask('one')).status).toBe(200);
    const [, error] = await errorOf(await ask('one'));
    expect(error['budget']).toMatchObject({ source: 'group' });
    gateway.reload(
      configOf({ research: { budget: { amount: '1', per: 'month' } } }, { one: { budget: own } }),
    );
    const [status, ofKey] = await errorOf(await ask('one'));
    expect([status, ofKey['budget']]).toMatchObject([402, { source: 'key', amount: '0.00001' }]);
    expect((await ask('two')).status).toBe(200);
  });
});

test('a key of a group that the config does not have is refused before anything of it is asked upstream', async () => {
  await start({ research: { concurrency: 1 } });
  const { key } = await gateway.keys.create({ name: 'issued', group: 'research' });
  const { groups: _groups, keys: _keys, ...others } = configOf({});
  gateway.reload(others);
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
  });
  const [status, error] = await errorOf(response);
  expect([status, error['code']]).toEqual([403, 'group_not_configured']);
  expect(upstream.seen).toEqual([]);
});
