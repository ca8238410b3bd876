import OpenAI, { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { cancelOnly, failureOf, testCancelled } from '../support/cancelled-clients.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const stage = await openStage();
const { upstream, gateway } = stage;

const messages = [{ role: 'user' as const, content: 'count' }];

testCancelled('7', OpenAI, stage);

describe('a cancelled request', () => {
  test('is a 499 that forbids a retry, and its record has this status', async () => {
    upstream.play(() => {});
    const answering = gateway.post('/v1/chat/completions', { model: 'small', messages });
    await eventually('the upstream has the request', () => upstream.seen.length > 0);
    await cancelOnly(gateway);
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
      for await (const { choices } of stream)
        if (choices[0]?.delta.content === 'one ') await cancelOnly(gateway);
    });
    expect(chat).toBeInstanceOf(APIError);
    expect(chat).toMatchObject({ code: 'request_cancelled' });

    const answer = readLive(gateway.post('/v1/responses', { model: 'small', input: 'count', stream: true }));
    await eventually('the first text has arrived', () => answer.text.includes('one '));
    await cancelOnly(gateway);
    await answer.ended;
    expect(answer.text).toMatch(/^event: error\ndata: .*"code":"request_cancelled"/m);
    expect(answer.text).toMatch(/^event: response.failed\ndata: .*"code":"request_cancelled"/m);
  });
});
