import { hiddenCharge, jsonType, systemFingerprint, usageCost } from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { KeptText } from '../kept-text.ts';
import type { ShownCharge } from '../text.ts';
import { chatUsage } from './chat-usage.ts';

/** Folds the events of an answer into one `chat.completion` object. */
export function createChatResultWriter(
  identity: AnswerIdentity,
  shown: ShownCharge = hiddenCharge,
): AnswerWriter {
  const text = new KeptText();
  return {
    contentType: jsonType,
    isStream: false,
    keepAlive: '',
    tearDownOnFailure: false,
    delta(more) {
      text.add(more);
      return '';
    },
    finish: ({ reason, usage }, _finishedAtSeconds, chargeNanos) =>
      JSON.stringify({
        id: `chatcmpl-${identity.id}`,
        object: 'chat.completion',
        created: identity.createdAtSeconds,
        model: identity.model,
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: text.toString(), refusal: null, annotations: [] },
            logprobs: null,
            finish_reason: reason,
          },
        ],
        // Left out of the JSON if it is unknown.
        usage: usage === null ? undefined : chatUsage(usage, usageCost(shown, chargeNanos)),
        system_fingerprint: systemFingerprint,
      }),
    fail: () => '',
  };
}
