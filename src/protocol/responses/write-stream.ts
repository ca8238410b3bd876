import { errorBody } from '../../shared/errors.ts';
import {
  chargeComment,
  eventStreamType,
  hiddenCharge,
  keepAliveComment,
  usageCost,
} from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter } from '../answer-writer.ts';
import { KeptText } from '../kept-text.ts';
import { writeDataFrame, writeEventFrame } from '../sse.ts';
import type { ResponsesExtras, ShownCharge } from '../text.ts';
import {
  inProgress,
  messageId,
  messageItem,
  responseObject,
  statusByReason,
  textPart,
} from './response-object.ts';
import type { ResponseState } from './response-object.ts';

/**
 * Writes the typed events of a text response: created, in_progress, the item and its part opened, the deltas, part and
 * item closed, and one terminal event. Sequence numbers run from 0 without a gap; ids are constant.
 */
export function createResponsesStreamWriter(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
  shown: ShownCharge = hiddenCharge,
): AnswerWriter {
  const item = { item_id: messageId(identity), output_index: 0, content_index: 0 };
  const deltaTail = `,${JSON.stringify(item).slice(1, -1)},"logprobs":[]}`;
  let sequence = 0;
  const text = new KeptText();
  const event = (type: string, fields: Record<string, unknown>): string =>
    writeEventFrame(type, JSON.stringify({ type, sequence_number: sequence++, ...fields }));
  const response = (state: ResponseState): { response: Record<string, unknown> } => ({
    response: responseObject(identity, extras, state),
  });
  const open = (): string =>
    sequence > 0
      ? ''
      : event('response.created', response(inProgress)) +
        event('response.in_progress', response(inProgress)) +
        event('response.output_item.added', {
          output_index: 0,
          item: messageItem(identity, 'in_progress', []),
        }) +
        event('response.content_part.added', { ...item, part: textPart('') });

  return {
    contentType: eventStreamType,
    isStream: true,
    keepAlive: keepAliveComment,
    tearDownOnFailure: false,
    delta(more) {
      const opening = open();
      text.add(more);
      const head = `{"type":"response.output_text.delta","sequence_number":${sequence++},"delta":`;
      return opening + writeEventFrame('response.output_text.delta', head + JSON.stringify(more) + deltaTail);
    },
    finish({ reason, usage }, finishedAtSeconds, chargeNanos) {
      const ending = statusByReason[reason];
      const whole = text.toString();
      const part = textPart(whole);
      const message = messageItem(identity, ending.status, [part]);
      const cost = usageCost(shown, chargeNanos);
      const state = {
        ...ending,
        completedAt: finishedAtSeconds,
        output: [message],
        usage,
        cost,
        error: null,
      };
      return (
        open() +
        event('response.output_text.done', { ...item, text: whole, logprobs: [] }) +
        event('response.content_part.done', { ...item, part }) +
        event('response.output_item.done', { output_index: 0, item: message }) +
        chargeComment(shown, chargeNanos) +
        event(`response.${ending.status}`, response(state)) +
        (extras.endsWithDone ? writeDataFrame('[DONE]') : '')
      );
    },
    fail(refusal, chargeNanos) {
      const error = errorBody(refusal);
      const { code, message, param } = error;
      return (
        chargeComment(shown, chargeNanos) +
        event('error', { code, message, param, error }) +
        event('response.failed', response({ ...inProgress, status: 'failed', error }))
      );
    },
  };
}
