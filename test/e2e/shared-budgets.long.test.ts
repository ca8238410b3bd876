import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

/** The scripted upstream's usage (11 in, 7 out) costs 0.000025 USD. */
const price = { input: '1', cacheWrite: '1', output: '2' };
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }], max_tokens: 1 };

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`nodes with clocks of their own${absent}`, () => {
  test('share a budget, which is refilled once: by the first one whose clock is in the new period', async () => {
    const database = await createDatabase();
    const upstream = await startUpstream();
    upstream.play(sayTexts(['a ', 'b']));
    const midnightMs = Date.parse('2026-10-24T22:00:00Z');
    let nowMs = midnightMs - 1_800_000;
    const start = (aheadMs: number): Promise<TestGateway> =>
      startGateway({
        upstreamUrl: upstream.url,
        price,
        databaseUrl: database.url,
        spool: makeTemporaryFolder(),
        clock: { ...systemClock, now: () => nowMs + aheadMs },
      });
    const [right, ahead] = await Promise.all([start(0), start(3_600_000)]);
    onTestFinished(async () => {
      await Promise.all([right.close(), ahead.close()]);
      await upstream.close();
      await database.drop();
    });
    const { key } = await right.gateway.keys.create({
      name: 'bob',
      concurrency: 20,
      budget: { amount: '0.0001', per: 'day', timeZone: 'Europe/Berlin' },
    });
    /** Sends requests one after the other, to each node in turn; returns their statuses. */
    const ask = async (nodes: readonly TestGateway[], count: number): Promise<readonly number[]> => {
      const statuses: number[] = [];
      for (let number = 0; number < count; number++) {
        const node = nodes[number % nodes.length] ?? right;
        const response = await node.post('/v1/chat/completions', body, {
          headers: { authorization: `Bearer ${key}` },
        });
        statuses.push(response.status);
      }
      return statuses;
    };
    expect(await ask([right], 5)).toEqual([200, 200, 200, 200, 402]);
    expect(await ask([ahead, right], 6)).toEqual([200, 200, 200, 200, 402, 402]);
    nowMs = midnightMs + 1;
    expect(await ask([right, ahead], 2)).toEqual([402, 402]);
    expect((await askAdmin(right, 'GET', '/ledger')).body).toMatchObject({ faults: [] });
  });
});
