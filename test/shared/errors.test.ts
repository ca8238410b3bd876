import { describe, expect, test } from 'vitest';
import { errorBody, isRefusal, isRetryable, refuse, statusOf } from '../../src/shared/errors.ts';
import type { ErrorCode } from '../../src/shared/errors.ts';

/** The product surface: what each code means to clients, which must not change. */
const surface: readonly (readonly [ErrorCode, number, string, boolean])[] = [
  ['invalid_json', 400, 'invalid_request_error', false],
  ['invalid_type', 400, 'invalid_request_error', false],
  ['missing_required_parameter', 400, 'invalid_request_error', false],
  ['unknown_parameter', 400, 'invalid_request_error', false],
  ['unsupported_parameter', 400, 'invalid_request_error', false],
  ['unsupported_value', 400, 'invalid_request_error', false],
  ['invalid_value', 400, 'invalid_request_error', false],
  ['empty_array', 400, 'invalid_request_error', false],
  ['content_filter', 400, 'invalid_request_error', false],
  ['context_length_exceeded', 400, 'invalid_request_error', false],
  ['invalid_api_key', 401, 'invalid_request_error', false],
  ['address_not_allowed', 403, 'invalid_request_error', false],
  ['key_not_found', 404, 'invalid_request_error', false],
  ['model_not_found', 404, 'invalid_request_error', false],
  ['unknown_url', 404, 'invalid_request_error', false],
  ['key_is_declared', 409, 'invalid_request_error', false],
  ['request_too_large', 413, 'invalid_request_error', false],
  ['expectation_failed', 417, 'invalid_request_error', false],
  ['concurrency_limit_exceeded', 429, 'rate_limit_error', true],
  ['rate_limit_exceeded', 429, 'rate_limit_error', true],
  ['upstream_rate_limited', 429, 'rate_limit_error', true],
  ['request_cancelled', 499, 'invalid_request_error', false],
  ['server_error', 500, 'server_error', true],
  ['upstream_error', 502, 'server_error', true],
  ['upstream_unavailable', 502, 'server_error', true],
  ['upstream_invalid', 502, 'server_error', false],
  ['upstream_truncated', 502, 'server_error', false],
  ['upstream_auth', 502, 'server_error', false],
  ['overloaded', 503, 'server_error', true],
  ['draining', 503, 'server_error', true],
  ['storage_unavailable', 503, 'server_error', true],
  ['upstream_timeout', 504, 'server_error', true],
];

describe('an error code', () => {
  test.each(surface)('%s has status %i and type %s (retryable: %s)', (code, status, type, retryable) => {
    expect([statusOf(code), errorBody(refuse(code, 'x')).type, isRetryable(code)]).toEqual([
      status,
      type,
      retryable,
    ]);
  });
});

describe('a refusal', () => {
  test('has null for every part that was not given', () => {
    expect(refuse('invalid_json', 'no')).toMatchObject({
      code: 'invalid_json',
      message: 'no',
      param: null,
      limit: null,
      retryAfterMs: null,
    });
  });

  test('takes its retry time from its limit, unless another one is given', () => {
    const limit = { source: 'key', kind: 'rate', limit: 3, retryAfterMs: 700 } as const;
    expect(refuse('rate_limit_exceeded', 'x', { limit }).retryAfterMs).toBe(700);
    expect(refuse('rate_limit_exceeded', 'x', { limit, retryAfterMs: 0 }).retryAfterMs).toBe(0);
  });

  test.each<[unknown, boolean]>([
    [refuse('server_error', 'x'), true],
    [{ type: 'delta', text: 'x' }, false],
    [null, false],
    [undefined, false],
    ['refusal', false],
    [[], false],
  ])('%j is recognized as a refusal: %s', (value, expected) => {
    expect(isRefusal(value)).toBe(expected);
  });
});

describe('an error body', () => {
  const key = `sk-tg-${'A'.repeat(12)}-${'b_-9'.repeat(10)}xyz`;

  test.each([
    [`Unknown request URL: GET /v1/nope/${key}. Check`, 'Unknown request URL: GET /v1/nope/sk-tg-…. Check'],
    [`at /v1/${key.slice(0, 30)}`, 'at /v1/sk-tg-…'],
    [`at /v1/${key.replaceAll('-', '%2D')}/more`, 'at /v1/sk-tg-…/more'],
    [`The model '${key}' and '${key}'`, "The model 'sk-tg-…' and 'sk-tg-…'"],
  ])('masks an API key in a path or a name: %s', (message, shown) => {
    const body = errorBody(refuse('unknown_parameter', message, { param: key }));
    expect(body).toMatchObject({ message: shown, param: 'sk-tg-…' });
  });

  test.each([
    ['at /v1/sk-Yq3vT9LmW0zKc7Rb1/more', 'at /v1/sk-…/more'],
    ["The model 'sk-proj-Yq3vT9LmW0zKc7Rb1'", "The model 'sk-…'"],
    ['at /v1/sk%2DYq3vT9LmW0zKc7Rb1', 'at /v1/sk-…'],
    ['Unknown parameter: risk-assessment-threshold', 'Unknown parameter: risk-assessment-threshold'],
    ["The model 'sk-small'", "The model 'sk-small'"],
  ])('masks an API key of an older gateway: %s', (message, shown) => {
    expect(errorBody(refuse('unknown_parameter', message)).message).toBe(shown);
  });

  test('has exactly the four fields of the envelope, in order', () => {
    const body = errorBody(refuse('invalid_type', 'wrong', { param: 'messages[0]' }));
    expect(JSON.stringify(body)).toBe(
      '{"message":"wrong","type":"invalid_request_error","param":"messages[0]","code":"invalid_type"}',
    );
    expect(errorBody(refuse('server_error', 'x')).param).toBeNull();
  });

  test('names the limit that was exceeded, with the requests in progress for a concurrency limit', () => {
    const rate = { source: 'upstream', kind: 'rate', limit: null, retryAfterMs: 5_000 } as const;
    expect(errorBody(refuse('upstream_rate_limited', 'x', { limit: rate })).limit).toEqual({
      source: 'upstream',
      kind: 'rate',
      limit: null,
      retry_after_ms: 5_000,
    });
    const running = {
      source: 'key',
      kind: 'concurrency',
      limit: 2,
      inFlight: 2,
      retryAfterMs: 1_000,
    } as const;
    expect(errorBody(refuse('concurrency_limit_exceeded', 'x', { limit: running })).limit).toEqual({
      source: 'key',
      kind: 'concurrency',
      limit: 2,
      in_flight: 2,
      retry_after_ms: 1_000,
    });
  });
});
