import { describe, expect, test } from 'vitest';
import { readFinishReason } from '../../../src/protocol/upstream/finish-reasons.ts';

const reasons = (expected: string, ...names: readonly string[]) =>
  names.map((name) => [name, expected] as const);

describe('a finish reason', () => {
  test.each([
    // Listed ones: OpenAI, Anthropic, Gemini, Cohere, Bedrock, Mistral, Together, Zhipu.
    ...reasons('stop', 'stop', 'STOP', 'end_turn', 'stop_sequence', 'STOP_SEQUENCE', 'COMPLETE', 'eos'),
    ...reasons('length', 'length', 'max_tokens', 'MAX_TOKENS', 'model_length', 'ERROR_LIMIT'),
    ...reasons('content_filter', 'content_filter', 'refusal', 'SAFETY', 'MODEL_ARMOR', 'JAILBREAK', 'SPII'),
    ...reasons('content_filter', 'content_filtered', 'guardrail_intervened', 'ERROR_TOXIC', 'sensitive'),
    ...reasons('content_filter', 'IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'RECITATION', 'LANGUAGE'),
    ...reasons('tool', 'tool_calls', 'TOOL_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_FUNCTION_CALL'),
    // Unlisted ones of a blocked kind.
    ...reasons('content_filter', 'input_guardrail_triggered', 'PROMPT_BLOCKED', 'BLOCKED', 'block'),
    ...reasons('content_filter', 'content-moderation', 'moderated', 'policy_violation', 'SHIELD_PROHIBITED'),
    ...reasons(
      'content_filter',
      'UNSAFE_CONTENT',
      'PROMPT_INJECTION',
      'refused',
      'copyright',
      'model_armour',
    ),
    ...reasons('content_filter', 'output_filter', 'flagged', 'data_policy', 'Safety Violation', 'censored'),
    // Unlisted ones of a blocked kind, with a technical word beside it.
    ...reasons('content_filter', 'content_filter_tool_calls', 'safety_limit', 'moderation_timeout', 'nsfw'),
    ...reasons('content_filter', 'policy_violation_tool', 'blocked_by_auth_policy', 'input_moderation_json'),
    ...reasons('content_filter', 'inappropriate', 'INAPPROPRIATE_CONTENT', 'usage_policy_limit'),
    // Unlisted ones of another kind: the answer may not be complete.
    ...reasons('unknown', 'error', 'abort', 'OTHER', 'MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE'),
    ...reasons(
      'unset',
      '',
      'null',
      'None',
      'NULL',
      'not_finished',
      'FINISH_REASON_UNSPECIFIED',
      'in_progress',
    ),
    ...reasons('unknown', 'NO_IMAGE', 'pause_turn', 'network_error', 'cancelled', 'repetition', 'NOVELTY'),
    ...reasons('unknown', 'connection_refused', 'protocol_violation', 'schema_violation', 'no_free_blocks'),
    ...reasons(
      'unknown',
      'ECONNREFUSED',
      'API_KEY_SERVICE_BLOCKED',
      'SECURITY_POLICY_VIOLATED',
      'unique_violation',
    ),
    ...reasons('unknown', 'rate_limit_policy', 'quota_policy', 'harmony_error', 'cache_policy', 'preempted'),
  ])('%s means %s', (name, expected) => {
    expect(readFinishReason(name)).toBe(expected);
  });
});
