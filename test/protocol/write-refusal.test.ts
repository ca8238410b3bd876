import { describe, expect, test } from 'vitest';
import { refusalBody, refusalHeaders } from '../../src/protocol/write-refusal.ts';
import { refuse } from '../../src/shared/errors.ts';
import type { ErrorCode } from '../../src/shared/errors.ts';

test('a refusal’s body is the error envelope', () => {
  expect(refusalBody(refuse('invalid_type', 'wrong', { param: 'model' }))).toBe(
    '{"error":{"message":"wrong","type":"invalid_request_error","param":"model","code":"invalid_type"}}',
  );
});

describe('a refusal’s headers', () => {
  test.each<[ErrorCode, boolean]>([
    ['upstream_truncated', true],
    ['upstream_invalid', true],
    ['upstream_auth', true],
    ['upstream_error', false],
    ['upstream_timeout', false],
    ['server_error', false],
    ['rate_limit_exceeded', false],
    ['request_timeout', false],
    ['invalid_type', false],
    ['invalid_api_key', false],
    ['request_too_large', false],
  ])('of %s forbid the retry that SDKs would make by themselves: %s', (code, forbidden) => {
    expect(refusalHeaders(refuse(code, 'x'))).toEqual(forbidden ? { 'x-should-retry': 'false' } : {});
  });

  test.each([
    [0.5, '1', '1'],
    [250, '1', '250'],
    [1_000, '1', '1000'],
    [1_000.5, '2', '1001'],
    [59_999, '60', '59999'],
  ])('tell a wait of %d ms as %s s and %s ms, never too short', (retryAfterMs, seconds, milliseconds) => {
    expect(refusalHeaders(refuse('rate_limit_exceeded', 'x', { retryAfterMs }))).toEqual({
      'retry-after': seconds,
      'retry-after-ms': milliseconds,
    });
  });
});
