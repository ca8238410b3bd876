import type OpenAI from 'openai';
import { beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from './admin-client.ts';
import { eventually } from './eventually.ts';
import type { RunningStage } from './stage.ts';
import type { TestGateway } from './test-gateway.ts';

/** Cancels the only request in progress. */
export async function cancelOnly(gateway: TestGateway): Promise<void> {
  const { data } = (await askAdmin(gateway, 'GET', '/in-flight')).body;
  expect((await askAdmin(gateway, 'POST', `/in-flight/${data[0].request_id}/cancel`)).status).toBe(200);
}

/** What some work throws. */
export async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('expected a failure');
}

/** The tests of a version of the openai client with its usual retries. */
export function testCancelled(
  version: string,
  Client: typeof OpenAI,
  { upstream, gateway }: RunningStage,
): void {
  beforeEach(() => void (upstream.seen.length = 0));

  describe(`the openai client, version ${version}, with its usual retries`, () => {
    const client = new Client({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key });
    const asked: Readonly<Record<string, () => Promise<unknown>>> = {
      'chat request': () =>
        client.chat.completions.create({ model: 'small', messages: [{ role: 'user', content: 'count' }] }),
      'Responses request': () => client.responses.create({ model: 'small', input: 'count' }),
    };

    test.each(Object.keys(asked))('does not send a cancelled whole %s again', async (name) => {
      upstream.play(() => {});
      const failing = failureOf(async () => asked[name]?.());
      await eventually('the upstream has the request', () => upstream.seen.length > 0);
      await cancelOnly(gateway);
      expect(await failing).toMatchObject({ status: 499, code: 'request_cancelled' });
      expect(upstream.seen).toHaveLength(1);
    });
  });
}
