import type { ErrorBody } from '../../shared/errors.ts';
import type { AnswerIdentity } from '../answer-writer.ts';
import type { FinishReason, ResponsesExtras, Usage } from '../text.ts';

/** The state of a response: running, or ended in one of three ways. */
export interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  readonly completedAt: number | null;
  readonly output: readonly unknown[];
  readonly usage: Usage | null;
  /** The field of the usage that shows its cost, if there is one. */
  readonly cost: { readonly cost?: number };
  readonly incompleteReason: 'max_output_tokens' | 'content_filter' | null;
  readonly error: ErrorBody | null;
}

export const inProgress: ResponseState = {
  status: 'in_progress',
  completedAt: null,
  output: [],
  usage: null,
  cost: {},
  incompleteReason: null,
  error: null,
};

/** The final status for each finish reason: a text that was cut short is `incomplete`, not `completed`. */
export const statusByReason: Readonly<
  Record<FinishReason, Pick<ResponseState, 'incompleteReason'> & { status: 'completed' | 'incomplete' }>
> = {
  stop: { status: 'completed', incompleteReason: null },
  length: { status: 'incomplete', incompleteReason: 'max_output_tokens' },
  content_filter: { status: 'incomplete', incompleteReason: 'content_filter' },
};

/** The response object, with every key that any known client's schema requires, from the first event on. */
export function responseObject(
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
export function messageItem(
  identity: AnswerIdentity,
  status: 'in_progress' | 'completed' | 'incomplete',
  content: readonly unknown[],
): Record<string, unknown> {
  return { id: messageId(identity), type: 'message', status, role: 'assistant', content };
}

/** The id of the message item. */
export function messageId(identity: AnswerIdentity): string {
  return `msg_${identity.id}`;
}

/** The content part of a text answer. */
export function textPart(text: string): Record<string, unknown> {
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
