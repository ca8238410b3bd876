import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { holdAnswers } from '../support/held-answers.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startServing } from '../support/serving-process.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, onServer, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const token = 'an-admin-token-for-tests';
const secrets = { one: 'the-first-declared-key-of-two-nodes', two: 'the-second-declared-key-of-two-nodes' };

/** The scripted upstream's usage (11 in, 7 out) costs 0.000025 USD. */
const price = { input: '1', cacheWrite: '1', output: '2' };

interface Node {
  readonly gateway: Gateway;
  readonly url: string;
  readonly adminUrl: string;
}

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`a group on two nodes${absent}`, () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
  });
  afterAll(async () => {
    await upstream.close();
    await database.drop();
  });

  const configOf = (concurrency: number): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token },
    storage: { url: database.url, spool: makeTemporaryFolder() },
    groups: { research: { concurrency, budget: { amount: '1', per: 'month' } } },
    keys: {
      one: { key: secrets.one, group: 'research' },
      two: { key: secrets.two, group: 'research', queueWait: '10m' },
    },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'm' }], price } },
  });

  async function startNodes(concurrency: number): Promise<readonly [Node, Node]> {
    const start = async (): Promise<Node> => {
      const gateway = createGateway(configOf(concurrency), { logLevel: 'silent' });
      onTestFinished(() => gateway.close());
      return { gateway, ...(await gateway.listen()) };
    };
    return [await start(), await start()];
  }

  const ask = (
    { url }: Pick<Node, 'url'>,
    who: keyof typeof secrets,
    signal: AbortSignal | null = null,
  ): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secrets[who]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 10 }),
      signal,
    });

  /** What the admin API of a node shows of the group. */
  async function shown({ adminUrl }: Pick<Node, 'adminUrl'>): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${adminUrl}/admin/groups`, { headers });
    return ((await response.json()) as { data: readonly [Record<string, unknown>] }).data[0];
  }

  const waiting = async (): Promise<readonly unknown[]> =>
    onServer(`SELECT concurrency::int FROM waiting_requests WHERE key_id = 'group:research'`, database.url);

  const startsOf = async (name: string): Promise<number> =>
    (
      await onServer(
        `SELECT 1 FROM starts JOIN api_keys ON api_keys.id = key_id WHERE api_keys.name = '${name}'`,
        database.url,
      )
    ).length;

  test('has its slots on both together, and both show the same of it', async () => {
    const [a, b] = await startNodes(2);
    const answer = holdAnswers(upstream);
    const running = [ask(a, 'one'), ask(b, 'two')];
    await eventually('both run', () => upstream.running === 2);
    const before = await startsOf('one');
    for (const node of [a, b]) {
      const refused = await ask(node, 'one');
      expect(refused.status).toBe(429);
      expect(await refused.json()).toMatchObject({
        error: { code: 'concurrency_limit_exceeded', limit: { source: 'group', limit: 2, in_flight: 2 } },
      });
      expect(await shown(node)).toMatchObject({ in_flight: 2 });
      // Its slots of two tables are one request each.
      expect((await node.gateway.inFlight()).data).toHaveLength(2);
    }
    expect(await startsOf('one')).toBe(before);
    answer();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
    for (const node of [a, b]) expect(await shown(node)).toMatchObject({ in_flight: 0 });
  });

  test('gives a slot that one node gives back to the request that waits on the other, and none to one that left', async () => {
    const [a, b] = await startNodes(1);
    const answer = holdAnswers(upstream);
    const running = ask(a, 'one');
    await eventually('it runs', () => upstream.running === 1);
    const leaving = new AbortController();
    const left = ask(b, 'two', leaving.signal);
    await eventually('one waits', async () => (await waiting()).length === 1);
    const served = ask(b, 'two');
    await eventually('both wait', async () => (await waiting()).length === 2);
    for (const node of [a, b]) {
      expect(await shown(node)).toMatchObject({ in_flight: 1 });
      expect((await node.gateway.inFlight()).data).toHaveLength(3);
    }
    leaving.abort();
    await expect(left).rejects.toThrow(/abort/);
    await eventually('one has left', async () => (await waiting()).length === 1);
    answer();
    expect((await Promise.all([running, served])).map(({ status }) => status)).toEqual([200, 200]);
    await eventually('all are free', async () => (await shown(a))['in_flight'] === 0);
    const places = await onServer(
      `SELECT request_id FROM slots UNION ALL SELECT request_id FROM waiting_requests`,
      database.url,
    );
    expect(places).toEqual([]);
  });

  test('serves its queue when the config of a node that has requests in it gives it more slots', async () => {
    const [a, b] = await startNodes(1);
    const answer = holdAnswers(upstream);
    const running = ask(a, 'one');
    await eventually('it runs', () => upstream.running === 1);
    const first = ask(b, 'two');
    await eventually('one waits', async () => (await waiting()).length === 1);
    const second = ask(a, 'two');
    await eventually('two wait', async () => (await waiting()).length === 2);
    b.gateway.reload(configOf(2));
    await eventually('one of them runs', () => upstream.running === 2);
    expect(await waiting()).toEqual([{ concurrency: 1 }]);
    b.gateway.reload(configOf(3));
    a.gateway.reload(configOf(3));
    await eventually('all run', () => upstream.running === 3);
    answer();
    const answers = await Promise.all([running, first, second]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('has the slots and the holds back of a process that died', { timeout: 120_000 }, async () => {
    const [a] = await startNodes(2);
    const { spent } = (await shown(a))['budget'] as { spent: string };
    const answer = holdAnswers(upstream);
    // Its ports are in its environment.
    const { server: _server, admin: _admin, ...config } = configOf(2);
    const dying = await startServing({ config });
    const lost = [ask(dying, 'one'), ask(dying, 'two')].map((asked) => asked.catch(() => null));
    await eventually('both run', () => upstream.running === 2);
    await eventually('both hold', async () => {
      const [row] = await onServer(
        `SELECT count(*)::int AS count FROM open_requests WHERE group_budget LIKE 'group:research %'`,
        database.url,
      );
      return row?.['count'] === 2;
    });
    expect((await ask(a, 'one')).status).toBe(429);
    dying.server.signal('SIGKILL');
    await Promise.all(lost);
    // As if it had died a minute ago.
    await onServer(
      `UPDATE owners SET renewed_at = renewed_at - 60000
       WHERE id IN (SELECT owner FROM open_requests WHERE group_budget LIKE 'group:research %')`,
      database.url,
    );
    await eventually('its slots and holds are back', async () => {
      const { in_flight: inFlight, budget } = await shown(a);
      return inFlight === 0 && (budget as { held: string }).held === '0.00';
    });
    expect(await shown(a)).toMatchObject({ budget: { spent } });
    answer();
    expect((await ask(a, 'one')).status).toBe(200);
  });
});
