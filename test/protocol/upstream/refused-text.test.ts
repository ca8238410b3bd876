import { describe, expect, test } from 'vitest';
import { classifyReported, classifyStatus } from '../../../src/protocol/upstream/classify-error.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

describe('an error that refuses a text', () => {
  test.each([
    [400, '{"error":{"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}'],
    [400, "The prompt triggered Azure OpenAI's content management policy. Please modify your prompt."],
    [
      400,
      '{"error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}',
    ],
    [400, '{"error":{"code":"content_policy_violation"}}'],
    [400, 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.'],
    [400, '{"error":{"message":"Content Exists Risk"}}'],
    [400, '{"code":"DataInspectionFailed"}'],
    [400, 'The request was rejected because it was considered high risk'],
    [422, '{"error":{"code":"moderation_blocked"}}'],
    [403, '{"error":{"code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}'],
    [403, 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO'],
    [
      403,
      '{"error":{"code":403,"metadata":{"flagged_input":"I was banned, and my bank account is closed"}}}',
    ],
    [
      403,
      'Flagged as potentially violating our usage policy. Repeated requests may result in your account being banned.',
    ],
    [403, '{"error":"content_filter"}'],
    [451, '{"error":{"code":"content_filter"}}'],
    [451, 'This violates our content policy.'],
    [500, '{"error":{"code":"content_filter"}}'],
    [429, '{"error":{"code":"content_filter"}}'],
    [500, '{"error":{"status":"PROHIBITED_CONTENT"}}'],
    [403, '{"error":{"code":"guardrail_intervened"}}'],
    [400, '{"error":{"code":"prompt_blocked"}}'],
    [404, '{"error":{"code":"moderation"}}'],
  ])('is known by its status %i and its words: %s', (status, body) => {
    expect(classifyStatus(status, body, null, plainSanitiser).kind).toBe('content_filtered');
  });

  test.each([
    [400, 'Unknown parameter: filter', 'rejected'],
    [403, 'Your account was suspended for violating our usage policies.', 'auth'],
    [403, 'Your account has been temporarily suspended for a violation of our usage policies.', 'auth'],
    [403, 'Forbidden', 'auth'],
    [403, 'Blocked', 'auth'],
    [403, '{"error":{"details":[{"reason":"API_KEY_SERVICE_BLOCKED"}]}}', 'auth'],
    [403, '{"error":{"details":[{"reason":"SECURITY_POLICY_VIOLATED"}]}}', 'auth'],
    [502, '{"error":{"code":"ECONNREFUSED"}}', 'server_error'],
    [500, 'content_filter', 'server_error'],
    [429, 'content_filter', 'rate_limited'],
  ])('is not any %i: %s', (status, body, kind) => {
    expect(classifyStatus(status, body, null, plainSanitiser).kind).toBe(kind);
  });

  test.each([
    [{ code: 'content_filter' }],
    [{ type: 'invalid_request_error', message: 'Output blocked by content filtering policy' }],
    [{ code: 400, message: 'This violates our usage policies.' }],
    [{ code: 403, message: 'No.', metadata: { flagged_input: 'my bank account' } }],
    [{ code: 403, message: 'Flagged for violating our usage policy. Your account may be suspended.' }],
    [{ code: 'SAFETY' }],
    [{ code: 'guardrail_intervened' }],
    [{ type: 'invalid_prompt' }],
    [{ code: 'content_filtered', message: 'x' }],
    [{ code: 'prompt_blocked', type: 'rate_limit_error' }],
    [{ message: 'Output blocked by content filtering policy', code: 'server_error' }],
  ])('is known inside an answer, too: %j', (error) => {
    expect(classifyReported(error, plainSanitiser).kind).toBe('content_filtered');
  });
});
