import type { AnswerIdentity } from '../../src/protocol/answer-writer.ts';
import type { ResponsesExtras, Usage } from '../../src/protocol/text.ts';

/** An answer whose model needs escaping in JSON. */
export const identity: AnswerIdentity = {
  id: '0123456789abcdef',
  createdAtSeconds: 1_800_000_000,
  model: 'a/"b"',
};

/** What a plain answer counts. */
export const plainUsage: Usage = {
  inputTokens: 11,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 18,
};

/** The same with cached input and thoughts. */
export const detailedUsage: Usage = { ...plainUsage, cachedInputTokens: 5, reasoningTokens: 6 };

/** A Responses request that sets none of its extras, and one that sets them all. */
export const noExtras: ResponsesExtras = {
  instructions: null,
  maxOutputTokens: null,
  metadata: {},
  user: null,
  safetyIdentifier: null,
  promptCacheKey: null,
  endsWithDone: false,
};
export const allExtras: ResponsesExtras = {
  instructions: 'be brief',
  maxOutputTokens: 9,
  metadata: { ticket: '7' },
  user: 'u',
  safetyIdentifier: 's',
  promptCacheKey: 'p',
  endsWithDone: false,
};
