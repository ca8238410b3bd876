import { HumanMessage, SystemMessage } from '@langchain/core/messages';
import type { BaseMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../../support/conversation.ts';

const stage = await setStage();

describe.each([
  ['chat', false],
  ['responses', true],
])('LangChain, by %s', (_name, useResponsesApi) => {
  const openModel = () =>
    new ChatOpenAI({
      model: 'small',
      apiKey: stage.apiKey,
      configuration: { baseURL: stage.baseURL },
      maxRetries: 0,
      useResponsesApi,
    });

  test('holds a conversation with whole answers', async () => {
    const messages: BaseMessage[] = [new SystemMessage(talk.system)];
    for (const [turn, question] of talk.questions.entries()) {
      messages.push(new HumanMessage(question));
      const answer = await openModel().invoke(messages);
      expect(answer.text).toBe(talk.answers[turn]);
      expect(answer.usage_metadata).toMatchObject({ total_tokens: 18 });
      messages.push(answer);
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation with streamed answers', async () => {
    const messages: BaseMessage[] = [new SystemMessage(talk.system)];
    for (const [turn, question] of talk.questions.entries()) {
      messages.push(new HumanMessage(question));
      const chunks = await Array.fromAsync(await openModel().stream(messages));
      const answer = chunks.reduce((sum, chunk) => sum.concat(chunk));
      expect(answer.text).toBe(talk.answers[turn]);
      expect(answer.usage_metadata).toMatchObject({ total_tokens: 18 });
      messages.push(answer);
    }
    stage.expectWholeHistory();
  });
});
