import { describe, expect, test } from 'vitest';
import { answerHeaders, refusalHeaders } from '../../src/http/answers/answer-headers.ts';
import { refuse } from '../../src/shared/errors.ts';
import type { ErrorCode } from '../../src/shared/errors.ts';

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
    ['request_too_large', false],
  ])('of %s forbid the retry that SDKs make by default: %s', (code, forbidden) => {
    expect(refusalHeaders(refuse(code, 'x'))).toEqual(forbidden ? { 'x-should-retry': 'false' } : {});
  });

  test('ask for a Bearer key with a 401', () => {
    expect(refusalHeaders(refuse('invalid_api_key', 'x'))).toEqual({
      'www-authenticate': 'Bearer realm="textgate"',
    });
  });

  test.each([
    [0.5, '1', '1'],
    [250, '1', '250'],
    [1_000, '1', '1000'],
    [1_000.5, '2', '1001'],
    [60_000, '60', '60000'],
  ])('give a wait of %d ms as %s s and %s ms, never too short', (retryAfterMs, seconds, milliseconds) => {
    expect(refusalHeaders(refuse('rate_limit_exceeded', 'x', { retryAfterMs }))).toEqual({
      'retry-after': seconds,
      'retry-after-ms': milliseconds,
    });
  });

  test('forbid the retry when the wait is longer than SDKs obey', () => {
    const refusal = refuse('rate_limit_exceeded', 'x', { retryAfterMs: 60_001 });
    expect(refusalHeaders(refusal)).toMatchObject({ 'retry-after': '61', 'x-should-retry': 'false' });
  });
});

test('a refusal by a limit of tokens says which limit is reached, in the form of OpenAI', () => {
  const limit = { source: 'key', kind: 'tokens', limit: 9, retryAfterMs: 90_000 } as const;
  expect(refusalHeaders(refuse('rate_limit_exceeded', 'x', { limit }))).toEqual({
    'retry-after': '90',
    'retry-after-ms': '90000',
    'x-should-retry': 'false',
    'x-ratelimit-limit-tokens': '9',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '1m30s',
  });
});

describe('an answer’s headers', () => {
  const head = {
    status: 200,
    contentType: 'text/event-stream',
    isStream: true,
    decision: { verdict: 'granted', inFlight: 1, remainingStarts: 59, resetMs: 60_000 },
    limits: { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 },
    balanceNanos: 1_500_000_000,
    replayOf: null,
    isUnkept: false,
    chargeNanos: null,
    tokens: null,
    queueMs: 0,
    stripped: ['temperature', 'top_p'],
    refusal: null,
  } as const;

  test('have the key’s limits and the stripped parameters, and forbid buffering of a stream', () => {
    expect(answerHeaders(head)).toEqual({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-reset-requests': '1m0s',
      'x-textgate-concurrency-limit': '2',
      'x-textgate-concurrency-in-flight': '1',
      'x-textgate-balance': '1.50',
      'x-textgate-stripped': 'temperature,top_p',
    });
  });

  test('have the charge of a whole answer, and the limit of tokens of a key that has one', () => {
    const tokens = { limit: 100, words: 'any 60 seconds', remaining: 60, resetMs: 1_500 };
    expect(answerHeaders({ ...head, isStream: false, chargeNanos: 1, tokens })).toMatchObject({
      'x-textgate-charge': '0.000000001',
      'x-ratelimit-limit-tokens': '100',
      'x-ratelimit-remaining-tokens': '60',
      'x-ratelimit-reset-tokens': '2s',
    });
  });

  test('have the wait in queues, in whole milliseconds, of a request that waited', () => {
    expect(answerHeaders({ ...head, queueMs: 1_200.2 })).toMatchObject({ 'x-textgate-queue-ms': '1201' });
  });

  test('name the request whose answer it is, if it is not their own, and no charge', () => {
    expect(answerHeaders({ ...head, replayOf: 'req_1', chargeNanos: 5 })).toMatchObject({
      'x-textgate-replayed': 'true',
      'x-textgate-original-request': 'req_1',
      'x-textgate-charge': '0.00',
    });
  });

  test('leave out limits, balance and stripped parameters where there are none', () => {
    const bare = { ...head, isStream: false, decision: null, limits: null, balanceNanos: null, stripped: [] };
    expect(answerHeaders(bare)).toEqual({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
    });
  });
});
