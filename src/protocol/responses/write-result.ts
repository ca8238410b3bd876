import { hiddenCharge, jsonType, usageCost } from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { KeptText } from '../kept-text.ts';
import type { ResponsesExtras, ShownCharge } from '../text.ts';
import { messageItem, responseObject, statusByReason, textPart } from './response-object.ts';

/** Folds the events of an answer into one `response` object. */
export function createResponsesResultWriter(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
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
    finish({ reason, usage }, finishedAtSeconds, chargeNanos) {
      const ending = statusByReason[reason];
      const output = [messageItem(identity, ending.status, [textPart(text.toString())])];
      const cost = usageCost(shown, chargeNanos);
      const state = { ...ending, completedAt: finishedAtSeconds, output, usage, cost, error: null };
      return JSON.stringify(responseObject(identity, extras, state));
    },
    fail: () => '',
  };
}
