import type { ChatMessage } from '@llamaindex/core/llms';
import { OpenAI } from '@llamaindex/openai';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../../support/conversation.ts';

const stage = await setStage();

describe('LlamaIndex', () => {
  const openModel = () =>
    new OpenAI({ model: 'small', apiKey: stage.apiKey, baseURL: stage.baseURL, maxRetries: 0 });

  test('holds a conversation with whole answers', async () => {
    const messages: ChatMessage[] = [{ role: 'system', content: talk.system }];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const { message } = await openModel().chat({ messages });
      expect(message.content).toBe(talk.answers[turn]);
      messages.push(message);
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation with streamed answers', async () => {
    const messages: ChatMessage[] = [{ role: 'system', content: talk.system }];
    for (const [turn, question] of talk.questions.entries()) {
      messages.push({ role: 'user', content: question });
      const chunks = await Array.fromAsync(await openModel().chat({ messages, stream: true }));
      const content = chunks.map(({ delta }) => delta).join('');
      expect(content).toBe(talk.answers[turn]);
      messages.push({ role: 'assistant', content });
    }
    stage.expectWholeHistory();
  });
});
