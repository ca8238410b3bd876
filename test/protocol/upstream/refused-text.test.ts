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
  ])('is known by its status %i and its words: %s', (status, body) => {
    expect(classifyStatus(status, body, null, plainSanitiser).kind).toBe('content_filtered');
  });

  test.each([
    [400, 'Unknown parameter: filter', 'rejected'],
    [403, 'Your account was suspended for violating our usage policies.', 'auth'],
    [403, 'Forbidden', 'auth'],
    [500, 'content_filter', 'server_error'],
    [429, 'content_filter', 'rate_limited'],
  ])('is not any %i: %s', (status, body, kind) => {
    expect(classifyStatus(status, body, null, plainSanitiser).kind).toBe(kind);
  });

  test.each([
    [{ code: 'content_filter' }],
    [{ type: 'invalid_request_error', message: 'Output blocked by content filtering policy' }],
    [{ code: 400, message: 'This violates our usage policies.' }],
  ])('is known inside an answer, too: %j', (error) => {
    expect(classifyReported(error, plainSanitiser).kind).toBe('content_filtered');
  });
});
