import { errorBody } from '../../shared/errors.ts';
import {
  chargeComment,
  eventStreamType,
  hiddenCharge,
  keepAliveComment,
  systemFingerprint,
  usageCost,
} from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { writeDataFrame } from '../sse.ts';
import type { ShownCharge } from '../text.ts';
import { chatUsage } from './chat-usage.ts';

/**
 * Writes `chat.completion.chunk` frames: the role once, the text, the finish reason once, the usage chunk only on
 * request, and `[DONE]` only after a finished answer. Other chunks have no `usage`: OpenAI's own have `null` there if it was
 * requested, but strict readers of the chat protocol, such as @openrouter/sdk, take an object or none.
 */
export function createChatStreamWriter(
  identity: AnswerIdentity,
  includeUsage: boolean,
  shown: ShownCharge = hiddenCharge,
): AnswerWriter {
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
    const first = opening;
    opening = '';
    return first;
  };
  return {
    contentType: eventStreamType,
    isStream: true,
    keepAlive: keepAliveComment,
    tearDownOnFailure: true,
    delta(text) {
      const frame = beforeText + JSON.stringify(text) + afterText;
      return opening === '' ? frame : open() + frame;
    },
    finish({ reason, usage }, _finishedAtSeconds, chargeNanos) {
      const last = chunk('{}', JSON.stringify(reason));
      const used =
        includeUsage && usage !== null
          ? writeDataFrame(
              `${head}[],"usage":${JSON.stringify(chatUsage(usage, usageCost(shown, chargeNanos)))}}`,
            )
          : '';
      return open() + last + used + chargeComment(shown, chargeNanos) + writeDataFrame('[DONE]');
    },
    fail: (refusal, chargeNanos) =>
      chargeComment(shown, chargeNanos) + writeDataFrame(JSON.stringify({ error: errorBody(refusal) })),
  };
}
