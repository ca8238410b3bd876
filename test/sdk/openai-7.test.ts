import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../support/conversation.ts';

const stage = setStage();
const openClient = () => new OpenAI({ baseURL: stage.baseURL, apiKey: stage.apiKey, maxRetries: 0 });

describe('the openai client, version 7', () => {
  test('holds a chat, each answer whole', async () => {
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

  test('holds a chat, each answer streamed', async () => {
    const messages: ChatCompletionMessageParam[] = [{ role: 'developer', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const stream = openClient().chat.completions.stream({ model: 'small', messages });
      const message = await stream.finalMessage();
      expect(message.content).toBe(talk.answers[turn]);
      messages.push(message);
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation of responses, each whole', async () => {
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

  test('holds a conversation of responses, each streamed', async () => {
    const input: ResponseInputItem[] = [{ role: 'system', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      input.push({ role: 'user', content });
      const stream = openClient().responses.stream({ model: 'small', input });
      const response = await stream.finalResponse();
      expect(response.output_text).toBe(talk.answers[turn]);
      expect(response.usage?.total_tokens).toBe(18);
      input.push(...(response.output as ResponseInputItem[]));
    }
    stage.expectWholeHistory();
  });
});
