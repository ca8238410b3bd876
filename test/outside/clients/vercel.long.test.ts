import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { APICallError, generateText, streamText } from 'ai';
import type { LanguageModel, ModelMessage } from 'ai';
import { describe, expect, test } from 'vitest';
import { setStage, talk } from '../../support/conversation.ts';

const stage = await setStage();
const provider = () => ({ baseURL: stage.baseURL, apiKey: stage.apiKey });

interface Kind {
  readonly model: () => LanguageModel;
  /** The options with which the SDK sends text rather than references to stored items. */
  readonly options?: { readonly openai: { readonly store: false } };
  /** Whether the SDK's streams ask for usage by default. */
  readonly usageInStreams: boolean;
}

const withoutStore = { openai: { store: false } } as const;

const kinds: readonly (readonly [string, Kind])[] = [
  ['chat', { model: () => createOpenAI(provider()).chat('small'), usageInStreams: true }],
  [
    'its default, responses, with store off',
    { model: () => createOpenAI(provider())('small'), options: withoutStore, usageInStreams: true },
  ],
  [
    'openai-compatible',
    {
      model: () => createOpenAICompatible({ name: 'textgate', ...provider() })('small'),
      usageInStreams: false,
    },
  ],
  [
    'open-responses',
    {
      model: () =>
        createOpenResponses({ name: 'textgate', url: `${stage.baseURL}/responses`, apiKey: stage.apiKey })(
          'small',
        ),
      usageInStreams: true,
    },
  ],
];

/** The settings of one turn, limited to what a user would set. */
const turnOf = ({ model, options }: Kind, messages: ModelMessage[]) => ({
  model: model(),
  system: talk.system,
  messages,
  maxRetries: 0,
  ...(options === undefined ? {} : { providerOptions: options }),
});

describe.each(kinds)('the Vercel AI SDK, by %s', (_name, kind) => {
  test('holds a conversation with whole answers', async () => {
    const messages: ModelMessage[] = [];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const result = await generateText(turnOf(kind, messages));
      expect(result.text).toBe(talk.answers[turn]);
      expect(result.finishReason).toBe('stop');
      expect(result.usage.totalTokens).toBe(18);
      messages.push(...result.response.messages);
    }
    stage.expectWholeHistory();
  });

  test('holds a conversation with streamed answers', async () => {
    const messages: ModelMessage[] = [];
    for (const [turn, content] of talk.questions.entries()) {
      messages.push({ role: 'user', content });
      const result = streamText(turnOf(kind, messages));
      expect(await result.text).toBe(talk.answers[turn]);
      expect(await result.finishReason).toBe('stop');
      expect((await result.usage).totalTokens).toBe(kind.usageInStreams ? 18 : undefined);
      messages.push(...(await result.response).messages);
    }
    stage.expectWholeHistory();
  });
});

describe('the Vercel AI SDK with default settings', () => {
  test('sends a reference on its second turn, and gets a refusal that names the setting to change', async () => {
    const kind: Kind = { model: () => createOpenAI(provider())('small'), usageInStreams: true };
    const messages: ModelMessage[] = [{ role: 'user', content: talk.questions[0] }];
    const first = await generateText(turnOf(kind, messages));
    messages.push(...first.response.messages, { role: 'user', content: talk.questions[1] });
    const failure: unknown = await generateText(turnOf(kind, messages)).catch((error: unknown) => error);
    expect(APICallError.isInstance(failure)).toBe(true);
    expect(failure).toMatchObject({
      statusCode: 400,
      isRetryable: false,
      message: expect.stringContaining('set providerOptions.openai.store to false') as string,
    });
    const second = await generateText(turnOf({ ...kind, options: withoutStore }, messages));
    expect(second.text).toBe(talk.answers[1]);
    stage.expectWholeHistory();
  });
});
