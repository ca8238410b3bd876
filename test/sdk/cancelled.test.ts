import OpenAI, { APIError } from 'openai';
import { OpenAI as OpenAI4 } from 'openai4';
import { beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage();
beforeEach(() => void (upstream.seen.length = 0));

const messages = [{ role: 'user' as const, content: 'count' }];

/** Cancels the only request in progress. */
async function cancelIt(): Promise<void> {
  const { data } = (await askAdmin(gateway, 'GET', '/in-flight')).body;
  expect((await askAdmin(gateway, 'POST', `/in-flight/${data[0].request_id}/cancel`)).status).toBe(200);
}

async function failureOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('expected a failure');
}

/** The clients with their usual retries. */
const clients: readonly (readonly [string, typeof OpenAI])[] = [
  ['7', OpenAI],
  ['4', OpenAI4 as unknown as typeof OpenAI],
];

describe.each(clients)('the openai client, version %s, with its usual retries', (_version, Client) => {
  const client = new Client({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key });
  const asked: Readonly<Record<string, () => Promise<unknown>>> = {
    'chat request': () => client.chat.completions.create({ model: 'small', messages }),
    'Responses request': () => client.responses.create({ model: 'small', input: 'count' }),
  };

  test.each(Object.keys(asked).filter((name) => name !== 'Responses request' || 'responses' in client))(
    'does not send a cancelled whole %s again',
    async (name) => {
      upstream.play(() => {});
      const failing = failureOf(async () => asked[name]?.());
      await eventually('the upstream has the request', () => upstream.seen.length > 0);
      await cancelIt();
      expect(await failing).toMatchObject({ status: 499, code: 'request_cancelled' });
      expect(upstream.seen).toHaveLength(1);
    },
  );
});

describe('a cancelled request', () => {
  test('is a 499 that forbids a retry, and its record has this status', async () => {
    upstream.play(() => {});
    const answering = gateway.post('/v1/chat/completions', { model: 'small', messages });
    await eventually('the upstream has the request', () => upstream.seen.length > 0);
    await cancelIt();
    const response = await answering;
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([499, 'false']);
    expect(await response.json()).toEqual({
      error: {
        message: 'The request was cancelled.',
        type: 'invalid_request_error',
        param: null,
        code: 'request_cancelled',
      },
    });
    const id = response.headers.get('x-request-id');
    expect((await askAdmin(gateway, 'GET', `/records/${id}`)).body).toMatchObject({
      outcome: 'cancelled',
      status: 499,
    });
  });

  test('fails its stream with the code request_cancelled', async () => {
    upstream.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const chat = await failureOf(async () => {
      const stream = await gateway.client.chat.completions.create({ model: 'small', messages, stream: true });
      for await (const { choices } of stream) if (choices[0]?.delta.content === 'one ') await cancelIt();
    });
    expect(chat).toBeInstanceOf(APIError);
    expect(chat).toMatchObject({ code: 'request_cancelled' });

    const answer = readLive(gateway.post('/v1/responses', { model: 'small', input: 'count', stream: true }));
    await eventually('the first text has arrived', () => answer.text.includes('one '));
    await cancelIt();
    await answer.ended;
    expect(answer.text).toMatch(/^event: error\ndata: .*"code":"request_cancelled"/m);
    expect(answer.text).toMatch(/^event: response.failed\ndata: .*"code":"request_cancelled"/m);
  });
});
