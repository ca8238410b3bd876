import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, generateText, streamText } from 'ai';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { sendJson, sendStream } from '../../support/scripted-upstream.ts';
import { openStage } from '../../support/stage.ts';

const clock = createFakeClock();
const { upstream, gateway } = await openStage({ clock });
const provider = createOpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key });
const models = [provider.chat('small'), provider('small')] as const;
const words = 'max_tokens is too large: 99999. This model supports at most 4096';

test.each(models)('the ai library reports an error of a stream that began with a comment', async (model) => {
  let call: ServerResponse | undefined;
  upstream.play((response) => {
    sendStream(response, []).flushHeaders();
    call = response;
  });
  const { stream } = streamText({ model, prompt: 'x', maxRetries: 0, onError: () => {} });
  const parts = Array.fromAsync(stream);
  await eventually('the upstream is asked', () => call !== undefined);
  await gateway.recorded();
  clock.advance(15_000);
  call?.end(`data: ${JSON.stringify({ error: { message: words, code: 400, type: 'bad_request' } })}\n\n`);
  const failure = (await parts).find(({ type }) => type === 'error');
  expect(JSON.stringify(failure)).toContain('invalid_value');
});

test.each(models)('the ai library has the words of the upstream in its error', async (model) => {
  const body = { error: { message: words, type: 'a_code', code: null } };
  upstream.play((response) => sendJson(response, 400, JSON.stringify(body)));
  const failure: unknown = await generateText({ model, prompt: 'x', maxRetries: 0 }).catch(
    (error: unknown) => error,
  );
  expect(APICallError.isInstance(failure)).toBe(true);
  expect(failure).toMatchObject({
    statusCode: 400,
    message: "The model's provider refused the request (status 400).",
    responseBody: expect.stringContaining(words) as string,
  });
});
