import { errorBody } from '../../shared/errors.ts';
import { eventStreamType, keepAliveComment } from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { writeDataFrame } from '../sse.ts';
import { chatUsage } from './chat-usage.ts';

/**
 * Writes `chat.completion.chunk` frames: the role once, the text, the finish reason once, the usage chunk only on
 * request, and `[DONE]` only after a finished answer. If usage was requested, every other chunk carries `usage:null`.
 */
export function createChatStreamWriter(identity: AnswerIdentity, includeUsage: boolean): AnswerWriter {
  const head =
    `{"id":"chatcmpl-${identity.id}","object":"chat.completion.chunk","created":${identity.createdAtSeconds},` +
    `"model":${JSON.stringify(identity.model)},"system_fingerprint":null,"choices":`;
  const tail = includeUsage ? ',"usage":null}' : '}';
  const chunk = (delta: string, reason: string): string =>
    writeDataFrame(`${head}[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${reason}}]${tail}`);
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
    delta: (text) => open() + chunk(`{"content":${JSON.stringify(text)}}`, 'null'),
    finish({ reason, usage }) {
      const last = chunk('{}', JSON.stringify(reason));
      const used =
        includeUsage && usage !== null
          ? writeDataFrame(`${head}[],"usage":${JSON.stringify(chatUsage(usage))}}`)
          : '';
      return open() + last + used + writeDataFrame('[DONE]');
    },
    fail: (refusal) => writeDataFrame(JSON.stringify({ error: errorBody(refusal) })),
  };
}
