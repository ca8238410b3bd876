import OpenAI from 'openai';
import { OpenAI as OpenAI4 } from 'openai4';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Response, ResponseInputItem } from 'openai/resources/responses/responses';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../support/conversation.ts';

const stage = await setStage();

/** Version 4 is used through the types of version 7: the parts used here have the same shape in both. */
const versions = [
  ['7', OpenAI, (client: OpenAI) => client.chat.completions],
  ['4', OpenAI4 as unknown as typeof OpenAI, chatHelpersOf4],
] as const;

/** The stream helpers of version 4. */
function chatHelpersOf4(client: OpenAI): OpenAI['chat']['completions'] {
  return (client as unknown as OpenAI4).beta.chat.completions as unknown as OpenAI['chat']['completions'];
}

describe.each(versions)('the openai client, version %s', (_version, Client, helpersOf) => {
  const openClient = () => new Client({ baseURL: stage.baseURL, apiKey: stage.apiKey, maxRetries: 0 });

  test('holds a chat with whole answers', async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: 'system', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const completion = await openClient().chat.completions.create({ model: 'small', messages });
      const [choice] = completion.choices;
      expect(choice?.message.content).toBe(talk.answers[turn]);
      expect(choice?.finish_reason).toBe('stop');
      expect(completion.usage?.total_tokens).toBe(18);
      if (choice !== undefined) messages.push(choice.message);
    }
    stage.expectWholeHistory();
  });

  test('holds a chat with streamed answers', async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: 'developer', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const stream = helpersOf(openClient()).stream({ model: 'small', messages });
      const message = await stream.finalMessage();
      expect(message.content).toBe(talk.answers[turn]);
      messages.push(message);
    }
    stage.expectWholeHistory();
  });

  test('holds a Responses conversation with whole answers', async () => {
    const input: ResponseInputItem[] = [];
    for (const [turn, content] of talk.questions.entries()) {
      input.push({ role: 'user', content });
      const response = await openClient().responses.create({
        model: 'small',
        instructions: talk.system,
        input,
      });
      expect(response.output_text).toBe(talk.answers[turn]);
      expect(response.status).toBe('completed');
      expect(response.usage?.total_tokens).toBe(18);
      input.push(...(response.output as ResponseInputItem[]));
    }
    stage.expectWholeHistory();
  });

  test('holds a Responses conversation with streamed answers', async () => {
    const input: ResponseInputItem[] = [{ role: 'system', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      input.push({ role: 'user', content });
      const stream = openClient().responses.stream({ model: 'small', input });
      const response = await stream.finalResponse();
      expect(textOf(response)).toBe(talk.answers[turn]);
      expect(response.usage?.total_tokens).toBe(18);
      input.push(...(response.output as ResponseInputItem[]));
    }
    stage.expectWholeHistory();
  });
});

/** The text, read without `output_text`: version 4 sets that for whole responses only. */
function textOf({ output }: Response): string {
  return output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('');
}
