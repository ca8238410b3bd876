import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ConfigInput } from '../../src/index.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

/** How long the upstream takes for an answer, in milliseconds. */
const answerMs = 40;

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`two nodes before one upstream with limits${absent}`, () => {
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

  /** Two gateways, what asks them, and the most requests that the upstream has had in progress. */
  async function startNodes(limits: Partial<ConfigInput['upstreams'][string]>) {
    let [running, most, started] = [0, 0, 0];
    const say = sayTexts(['Hello', ' there']);
    upstream.play(async (response, request) => {
      started++;
      most = Math.max(most, ++running);
      await wait(answerMs);
      // Before the answer goes out: a client that has read it may send the next request at once.
      running--;
      await say(response, request);
    });
    const nodes = await Promise.all(
      [0, 1].map(() =>
        startGateway({
          databaseUrl: database.url,
          spool: makeTemporaryFolder(),
          upstreams: { local: { url: upstream.url, ...limits } },
          limits: { concurrency: 100, requestsPerMinute: 100_000 },
        }),
      ),
    );
    onTestFinished(() => Promise.all(nodes.map((node) => node.close())).then(() => {}));
    const body = { model: 'small', messages: [{ role: 'user', content: 'a question' }] };
    const ask = async (node: TestGateway): Promise<number> => {
      const response = await node.post('/v1/chat/completions', body);
      await response.text();
      return response.status;
    };
    return { nodes: nodes as [TestGateway, TestGateway], ask, seen: () => ({ most, started }) };
  }

  test('never have more in progress there than its limit together, and each gets about half under load', async () => {
    const { nodes, ask, seen } = await startNodes({ maxInFlight: 4, queueWait: '30s' });
    // A node that came first gives back what is too much with the next settling, within two seconds.
    const fromMs = performance.now() + 1_300;
    const untilMs = fromMs + 1_000;
    const served = await Promise.all(
      nodes.map(async (node) => {
        let count = 0;
        const work = async (): Promise<void> => {
          while (performance.now() < untilMs) {
            expect(await ask(node)).toBe(200);
            if (performance.now() > fromMs) count++;
          }
        };
        await Promise.all(Array.from({ length: 8 }, work));
        return count;
      }),
    );
    expect(seen().most).toBe(4);
    const [first = 0, second = 0] = served;
    expect(Math.min(first, second) / (first + second)).toBeGreaterThan(0.35);
  });

  test('never have more of one model in progress than its own limit, together', async () => {
    const models = { tiny: { maxInFlight: 2 } };
    const { nodes, ask, seen } = await startNodes({ maxInFlight: 50, queueWait: '30s', models });
    const statuses = await Promise.all(Array.from({ length: 24 }, (_, at) => ask(nodes[at % 2] ?? nodes[0])));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(seen()).toEqual({ most: 2, started: 24 });
    for (const { adminUrl, adminToken } of nodes) {
      const headers = { authorization: `Bearer ${adminToken}` };
      const view = await fetch(`${adminUrl}/admin/upstreams`, { headers });
      expect(await view.json()).toMatchObject({
        data: [{ limiter: { waiting: 0, models: [{ model: 'tiny', in_flight: 0 }] } }],
      });
    }
  });

  test('start as many requests a minute as it takes, on both together', async () => {
    const { nodes, ask, seen } = await startNodes({ requestsPerMinute: 10, queueWait: '1s' });
    const statuses = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(nodes[at % 2] ?? nodes[0])));
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
    expect(seen().started).toBe(10);
  });

  test('serve one request at once where the other node is idle, and nothing may wait', async () => {
    const { nodes, ask } = await startNodes({ maxInFlight: 1, queueWait: '0s' });
    for (const node of [nodes[0], nodes[0], nodes[1]]) expect(await ask(node)).toBe(200);
  });
});
