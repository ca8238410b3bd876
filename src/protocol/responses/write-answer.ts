import { errorBody } from '../../shared/errors.ts';
import type { ErrorBody, Refusal } from '../../shared/errors.ts';
import {
  afterCharge,
  createWholeAnswerWriter,
  eventStreamType,
  hiddenCharge,
  keepAliveComment,
  numberEvents,
  usageCost,
} from '../answer-writer.ts';
import type { AnswerIdentity, AnswerWriter, EventNumbers } from '../answer-writer.ts';
import { KeptText } from '../kept-text.ts';
import { writeDataFrame, writeEventFrame } from '../sse.ts';
import type { FinishedAnswer, FinishReason, ResponsesExtras, ShownCharge, Usage } from '../text.ts';

/** Folds the events of an answer into one `response` object. */
export function createResponsesResultWriter(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
  shown: ShownCharge = hiddenCharge,
): AnswerWriter {
  return createWholeAnswerWriter((text, finish, finishedAtSeconds, chargeNanos) => {
    const cost = usageCost(shown, chargeNanos);
    const state = finishedState(identity, textPart(text), finish, finishedAtSeconds, cost);
    return responseObject(identity, extras, state);
  });
}

/** The `response` object of a request that has no answer yet, or was stopped, or has failed, as JSON. */
export function writeResponseState(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
  state: 'in_progress' | 'cancelled' | Refusal,
): string {
  const told: ResponseState =
    typeof state === 'string' ? { ...inProgress, status: state } : failedState(errorBody(state));
  return JSON.stringify(responseObject(identity, extras, told));
}

/**
 * Writes the typed events of a text response: created, in_progress, the item and its part opened, the deltas, part and
 * item closed, and one terminal event. Sequence numbers run from 0 without a gap; ids are constant.
 */
export function createResponsesStreamWriter(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
  shown: ShownCharge = hiddenCharge,
  numbers: EventNumbers | null = null,
): AnswerWriter {
  const numbered = numberEvents(numbers);
  const item = { item_id: messageId(identity), output_index: 0, content_index: 0 };
  const deltaTail = `,${JSON.stringify(item).slice(1, -1)},"logprobs":[]}`;
  let sequence = 0;
  const text = new KeptText();
  const write = (type: string, fields: Record<string, unknown>): string =>
    writeEventFrame(type, JSON.stringify({ type, sequence_number: sequence++, ...fields }));
  const event: typeof write = (type, fields) => numbered(write(type, fields));
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
      const frame = writeEventFrame('response.output_text.delta', head + JSON.stringify(more) + deltaTail);
      return opening + numbered(frame);
    },
    finish(finish, finishedAtSeconds, chargeNanos) {
      const whole = text.toString();
      const part = textPart(whole);
      const state = finishedState(identity, part, finish, finishedAtSeconds, usageCost(shown, chargeNanos));
      return (
        open() +
        event('response.output_text.done', { ...item, text: whole, logprobs: [] }) +
        event('response.content_part.done', { ...item, part }) +
        event('response.output_item.done', { output_index: 0, item: state.output[0] }) +
        afterCharge(event(`response.${state.status}`, response(state)), shown, chargeNanos) +
        (extras.endsWithDone ? numbered(writeDataFrame('[DONE]')) : '')
      );
    },
    fail(refusal, chargeNanos) {
      const error = errorBody(refusal);
      const { code, message, param } = error;
      // A failure is no event of the answer: it has no id, and no client has it already.
      const frames =
        write('error', { code, message, param, error }) +
        write('response.failed', response(failedState(error)));
      return afterCharge(frames, shown, chargeNanos);
    },
  };
}

/** The state of a response: running, or ended in one of four ways. */
interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';
  readonly completedAt: number | null;
  readonly output: readonly unknown[];
  readonly usage: Usage | null;
  /** The field of the usage that shows its cost, if there is one. */
  readonly cost: { readonly cost?: number };
  readonly incompleteReason: 'max_output_tokens' | 'content_filter' | null;
  readonly error: ErrorBody | null;
}

const inProgress: ResponseState = {
  status: 'in_progress',
  completedAt: null,
  output: [],
  usage: null,
  cost: {},
  incompleteReason: null,
  error: null,
};

function failedState(error: ErrorBody): ResponseState {
  return { ...inProgress, status: 'failed', error };
}

/** The final status for each finish reason: a text that was cut short is `incomplete`, not `completed`. */
const statusByReason: Readonly<
  Record<FinishReason, Pick<ResponseState, 'incompleteReason'> & { status: 'completed' | 'incomplete' }>
> = {
  stop: { status: 'completed', incompleteReason: null },
  length: { status: 'incomplete', incompleteReason: 'max_output_tokens' },
  content_filter: { status: 'incomplete', incompleteReason: 'content_filter' },
};

/** The state of a response that ended with this part as its text. */
function finishedState(
  identity: AnswerIdentity,
  part: Record<string, unknown>,
  { reason, usage }: FinishedAnswer,
  completedAt: number,
  cost: ResponseState['cost'],
): ResponseState {
  const ending = statusByReason[reason];
  const output = [messageItem(identity, ending.status, [part])];
  return { ...ending, completedAt, output, usage, cost, error: null };
}

/** The response object, with every key that any known client's schema requires, from the first event on. */
function responseObject(
  identity: AnswerIdentity,
  extras: ResponsesExtras,
  state: ResponseState,
): Record<string, unknown> {
  const { status, completedAt, output, usage, cost, incompleteReason, error } = state;
  return {
    id: `resp_${identity.id}`,
    object: 'response',
    access_programs: null,
    created_at: identity.createdAtSeconds,
    completed_at: completedAt,
    status,
    background: false,
    error: error === null ? null : { code: error.code, message: error.message },
    incomplete_details: incompleteReason === null ? null : { reason: incompleteReason },
    instructions: extras.instructions,
    max_output_tokens: extras.maxOutputTokens,
    max_tool_calls: null,
    model: identity.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: extras.promptCacheKey,
    reasoning: { effort: null, summary: null },
    safety_identifier: extras.safetyIdentifier,
    service_tier: 'default',
    store: false,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    truncation: 'disabled',
    usage: usage === null ? null : responsesUsage(usage, cost),
    // OpenAI's types have a string or none.
    ...(extras.user === null ? {} : { user: extras.user }),
    metadata: extras.metadata,
  };
}

/** The one output item of a text answer. */
function messageItem(
  identity: AnswerIdentity,
  status: 'in_progress' | 'completed' | 'incomplete',
  content: readonly unknown[],
): Record<string, unknown> {
  return { id: messageId(identity), type: 'message', status, role: 'assistant', content };
}

/** The id of the message item. */
function messageId(identity: AnswerIdentity): string {
  return `msg_${identity.id}`;
}

/** The content part of a text answer. */
function textPart(text: string): Record<string, unknown> {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function responsesUsage(usage: Usage, cost: ResponseState['cost']): Record<string, unknown> {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.totalTokens,
    ...cost,
  };
}
