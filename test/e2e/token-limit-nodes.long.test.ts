import { describe, expect, onTestFinished, test } from 'vitest';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const path = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
/** What each scripted answer uses. */
const tokens = 18;

describe('a limit of tokens per day', () => {
  test.skipIf(postgresAbsence !== null)('is shared by all nodes on one database', async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const upstream = await startUpstream();
    upstream.play(sayTexts(['a ', 'b']));
    onTestFinished(() => upstream.close());
    const start = async (): Promise<TestGateway> => {
      const gateway = await startGateway({
        upstreamUrl: upstream.url,
        databaseUrl: database.url,
        spool: makeTemporaryFolder(),
        limits: { tokensPerDay: tokens + 1 },
      });
      onTestFinished(() => gateway.close());
      return gateway;
    };
    const [one, two] = [await start(), await start()];
    const { secret } = await one.gateway.createKey('bob');
    const headers = { authorization: `Bearer ${secret}` };
    expect((await one.post(path, body, { headers })).status).toBe(200);
    expect((await two.post(path, body, { headers })).status).toBe(200);
    const refused = await Promise.all([one, two].map((node) => node.post(path, body, { headers })));
    expect(refused.map(({ status }) => status)).toEqual([429, 429]);
  });
});
