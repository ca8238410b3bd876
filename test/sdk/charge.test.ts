import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { sayTexts } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage({
  price: { input: '1', output: '2' },
  compatibility: { usageCost: true, chargeComment: true },
});
upstream.play(sayTexts(['a ', 'b']));
const messages = [{ role: 'user' as const, content: 'x' }];
/** What 11 tokens of input and 7 of output cost. */
const charge = '0.000025';

test('the openai client reads the charge of a whole answer from its header', async () => {
  const chat = await gateway.client.chat.completions.create({ model: 'small', messages }).withResponse();
  const answer = await gateway.client.responses.create({ model: 'small', input: 'x' }).withResponse();
  expect(chat.response.headers.get('x-textgate-charge')).toBe(charge);
  expect(answer.response.headers.get('x-textgate-charge')).toBe(charge);
});

test('the openai client reads the cost of every kind of answer from its usage, as from OpenRouter', async () => {
  const asked = { model: 'small', messages, stream_options: { include_usage: true } };
  const input = { model: 'small', input: 'x' };
  const used = [
    (await gateway.client.chat.completions.create({ model: 'small', messages })).usage,
    (await gateway.client.chat.completions.stream(asked).finalChatCompletion()).usage,
    (await gateway.client.responses.create(input)).usage,
    (await gateway.client.responses.stream(input).finalResponse()).usage,
  ];
  expect(used).toMatchObject(Array.from({ length: 4 }, () => ({ cost: Number(charge) })));
});

test('the openai client sets the ceiling of a request by a header, and gets the refusal as an error of its own', async () => {
  const openClient = (most: string) =>
    new OpenAI({
      baseURL: `${gateway.url}/v1`,
      apiKey: gateway.key,
      maxRetries: 0,
      defaultHeaders: { 'x-textgate-max-cost': most },
    });
  const asked = { model: 'small', messages, max_tokens: 100 };
  expect((await openClient('0.05').chat.completions.create(asked)).usage?.total_tokens).toBe(18);
  await expect(openClient('0.0001').chat.completions.create(asked)).rejects.toMatchObject({
    status: 400,
    code: 'max_cost_exceeded',
    param: 'x-textgate-max-cost',
  });
});
