import type OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Response, ResponseInputItem } from 'openai/resources/responses/responses';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from './conversation.ts';

/**
 * The tests of a version of the openai client, through the types of the current one: the parts used here have the same shape
 * in all. `helpersOf` finds its stream helpers.
 */
export async function testConversations(
  version: string,
  Client: typeof OpenAI,
  helpersOf: (client: OpenAI) => OpenAI['chat']['completions'],
): Promise<void> {
  const stage = await setStage();

  describe(`the openai client, version ${version}`, () => {
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
}

/** The text, read without `output_text`: version 4 sets that for whole responses only. */
function textOf({ output }: Response): string {
  return output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('');
}
