import { chat, EventType } from '@tanstack/ai';
import { createOpenaiChat, createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../../support/conversation.ts';

const stage = await setStage();

/** The SDK has types for the models of OpenAI alone. */
const model = 'small' as 'gpt-4o';

interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

describe.each([
  ['chat', createOpenaiChatCompletions],
  ['responses', createOpenaiChat],
])('TanStack AI, by %s', (_name, openAdapter) => {
  const turnOf = (messages: Message[]) => ({
    adapter: openAdapter(model, stage.apiKey, { baseURL: stage.baseURL, maxRetries: 0 }),
    messages,
    systemPrompts: [talk.system],
  });

  test('holds a conversation with whole answers', async () => {
    const messages: Message[] = [];
    for (const [turn, question] of talk.questions.entries()) {
      messages.push({ role: 'user', content: question });
      const content = await chat({ ...turnOf(messages), stream: false });
      expect(content).toBe(talk.answers[turn]);
      messages.push({ role: 'assistant', content });
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation with streamed answers', async () => {
    const messages: Message[] = [];
    for (const [turn, question] of talk.questions.entries()) {
      messages.push({ role: 'user', content: question });
      const events = await Array.fromAsync(chat({ ...turnOf(messages), stream: true }));
      const pieces = events.map((event) =>
        event.type === EventType.TEXT_MESSAGE_CONTENT ? event.delta : '',
      );
      const content = pieces.join('');
      expect(content).toBe(talk.answers[turn]);
      messages.push({ role: 'assistant', content });
    }
    stage.expectWholeHistory();
  });
});
