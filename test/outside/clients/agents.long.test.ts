import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  user,
} from '@openai/agents';
import type { AgentInputItem } from '@openai/agents';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../../support/conversation.ts';

setTracingDisabled(true);
const stage = await setStage();
const openClient = () => new OpenAI({ baseURL: stage.baseURL, apiKey: stage.apiKey, maxRetries: 0 });

describe.each([
  ['chat', () => new OpenAIChatCompletionsModel(openClient(), 'small')],
  ['responses', () => new OpenAIResponsesModel(openClient(), 'small')],
])('the agents SDK without tools, by %s', (_name, openModel) => {
  const openAgent = () => new Agent({ name: 'terse', instructions: talk.system, model: openModel() });

  test('holds a conversation with whole answers', async () => {
    let history: AgentInputItem[] = [];
    for (const [turn, question] of talk.questions.entries()) {
      const result = await run(openAgent(), [...history, user(question)]);
      expect(result.finalOutput).toBe(talk.answers[turn]);
      history = result.history;
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation with streamed answers', async () => {
    let history: AgentInputItem[] = [];
    for (const [turn, question] of talk.questions.entries()) {
      const result = await run(openAgent(), [...history, user(question)], { stream: true });
      const pieces = await Array.fromAsync(result.toTextStream());
      await result.completed;
      expect(pieces.join('')).toBe(talk.answers[turn]);
      history = result.history;
    }
    stage.expectWholeHistory();
  });
});
