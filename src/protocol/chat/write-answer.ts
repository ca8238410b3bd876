import {
  afterCharge,
  createWholeAnswerWriter,
  eventStreamType,
  hiddenCharge,
  keepAliveComment,
  numberEvents,
  systemFingerprint,
  usageCost,
  writeRefusal,
} from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter, EventNumbers } from '../answer-writer.ts';
import { writeDataFrame } from '../sse.ts';
import type { ShownCharge, Usage } from '../text.ts';

/** Folds the events of an answer into one `chat.completion` object. */
export function createChatResultWriter(
  identity: AnswerIdentity,
  shown: ShownCharge = hiddenCharge,
): AnswerWriter {
  return createWholeAnswerWriter((text, { reason, usage }, _finishedAtSeconds, chargeNanos) => ({
    id: `chatcmpl-${identity.id}`,
    object: 'chat.completion',
    created: identity.createdAtSeconds,
    model: identity.model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: reason,
      },
    ],
    // Left out of the JSON if it is unknown.
    usage: usage === null ? undefined : chatUsage(usage, usageCost(shown, chargeNanos)),
    system_fingerprint: systemFingerprint,
  }));
}

/**
 * Writes `chat.completion.chunk` frames: the role once, the text, the finish reason once, the usage chunk only on
 * request, and `[DONE]` only after a finished answer. Other chunks have no `usage`: OpenAI's own have `null` there if it was
 * requested, but strict readers of the chat protocol, such as @openrouter/sdk, take an object or none.
 */
export function createChatStreamWriter(
  identity: AnswerIdentity,
  includeUsage: boolean,
  shown: ShownCharge = hiddenCharge,
  numbers: EventNumbers | null = null,
): AnswerWriter {
  const event = numberEvents(numbers);
  const head =
    `{"id":"chatcmpl-${identity.id}","object":"chat.completion.chunk","created":${identity.createdAtSeconds},` +
    `"model":${JSON.stringify(identity.model)},"system_fingerprint":"${systemFingerprint}","choices":`;
  const beforeDelta = `${head}[{"index":0,"delta":`;
  const chunk = (delta: string, reason: string): string =>
    writeDataFrame(`${beforeDelta}${delta},"logprobs":null,"finish_reason":${reason}}]}`);
  // All frames of text are the same but for their text.
  const beforeText = `data: ${beforeDelta}{"content":`;
  const afterText = `},"logprobs":null,"finish_reason":null}]}\n\n`;
  let opening = chunk('{"role":"assistant","content":"","refusal":null}', 'null');
  const open = (): string => {
    if (opening === '') return '';
    const first = opening;
    opening = '';
    return event(first);
  };
  return {
    contentType: eventStreamType,
    isStream: true,
    keepAlive: keepAliveComment,
    tearDownOnFailure: true,
    delta(text) {
      const first = open();
      const frame = event(beforeText + JSON.stringify(text) + afterText);
      return first === '' ? frame : first + frame;
    },
    finish({ reason, usage }, _finishedAtSeconds, chargeNanos) {
      const text = open() + event(chunk('{}', JSON.stringify(reason)));
      const used =
        includeUsage && usage !== null
          ? event(
              writeDataFrame(
                `${head}[],"usage":${JSON.stringify(chatUsage(usage, usageCost(shown, chargeNanos)))}}`,
              ),
            )
          : '';
      return text + used + afterCharge(event(writeDataFrame('[DONE]')), shown, chargeNanos);
    },
    // A failure is no event of the answer: it has no number, and no client has it already.
    fail: (refusal, chargeNanos) => afterCharge(writeDataFrame(writeRefusal(refusal)), shown, chargeNanos),
  };
}

/** The `usage` object of Chat Completions, with the field that shows its cost, if there is one. */
function chatUsage(usage: Usage, cost: { readonly cost?: number }): Record<string, unknown> {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...cost,
  };
}
