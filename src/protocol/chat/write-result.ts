import { jsonType } from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { chatUsage } from './chat-usage.ts';

/** Folds the events of an answer into one `chat.completion` object. */
export function createChatResultWriter(identity: AnswerIdentity): AnswerWriter {
  let text = '';
  return {
    contentType: jsonType,
    isStream: false,
    keepAlive: '',
    tearDownOnFailure: false,
    delta(more) {
      text += more;
      return '';
    },
    finish: ({ reason, usage }) =>
      JSON.stringify({
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
        usage: usage === null ? undefined : chatUsage(usage),
        system_fingerprint: null,
      }),
    fail: () => '',
  };
}
