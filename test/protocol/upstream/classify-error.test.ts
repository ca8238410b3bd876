import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../src/domain/upstreams/failure.ts';
import type { Refusal } from '../../../src/shared/errors.ts';
import { classifyReported, classifyStatus } from '../../../src/protocol/upstream/classify-error.ts';
import { createSanitiser } from '../../../src/protocol/upstream/words/sanitise.ts';
import { plainSanitiser } from '../../support/sanitiser.ts';

function readUpstreamError(status: number, body: string, retryAfterMs: number | null): Refusal {
  return refusalOf(classifyStatus(status, body, retryAfterMs, plainSanitiser));
}

function readReportedError(error: unknown): Refusal {
  return refusalOf(classifyReported(error, plainSanitiser));
}

describe('an upstream’s error status', () => {
  test.each([
    [400, 'invalid_value'],
    [401, 'upstream_auth'],
    [402, 'upstream_auth'],
    [403, 'upstream_auth'],
    [404, 'upstream_error'],
    [408, 'upstream_timeout'],
    [413, 'invalid_value'],
    [418, 'upstream_error'],
    [422, 'invalid_value'],
    [429, 'upstream_rate_limited'],
    [500, 'upstream_error'],
    [502, 'upstream_error'],
    [503, 'overloaded'],
    [504, 'upstream_timeout'],
    [529, 'overloaded'],
    [301, 'upstream_error'],
  ])('%i becomes %s', (status, code) => {
    expect(readUpstreamError(status, '', null).code).toBe(code);
  });

  test.each([
    [400, '{"error":{"code":"context_length_exceeded"}}'],
    [400, "This model's maximum context length is 8192 tokens"],
    [400, '{"error":{"type":"exceed_context_size_error"}}'],
    [413, 'the prompt does not fit the context window'],
    [422, 'Context size has been exceeded'],
    [400, "This model's maximum prompt length is 131072 but the request contains 136973 tokens."],
    [400, 'The decoder prompt (length 21535) is longer than the maximum model length of 16384.'],
    [400, '{"error":{"message":"prompt is too long: 3333404 tokens > 200000 maximum"}}'],
    [400, 'input length and `max_tokens` exceed context limit: 199999 + 4096 > 200000'],
    [400, 'The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).'],
  ])('%i with %s becomes context_length_exceeded', (status, body) => {
    expect(readUpstreamError(status, body, null).code).toBe('context_length_exceeded');
  });

  test('400 for an API key that Google rejects becomes upstream_auth', () => {
    const body = '{"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}]}}';
    expect(readUpstreamError(400, body, null).code).toBe('upstream_auth');
  });

  test('400 whose details name the operator’s location becomes upstream_auth', () => {
    const details = [{ detail: '[ORIGINAL ERROR] generic: User location is not supported for the API use.' }];
    const body = JSON.stringify({ error: { code: 400, message: '$grpcMessage', details } });
    expect(readUpstreamError(400, body, null).code).toBe('upstream_auth');
  });

  test('a quoted request about API keys and billing is not taken for the operator’s fault', () => {
    const asked = 'Why is my API key not valid, and where is the billing page?';
    const sanitise = createSanitiser({
      turns: [{ role: 'user', text: asked }],
      clientKey: '',
      upstream: () => ({ keys: [], hosts: [] }),
      names: [],
    });
    const details = [{ detail: asked }];
    for (const error of [
      { message: `bad: "${asked}"` },
      { message: 'bad', details },
      { message: 'bad', input: asked },
    ])
      expect(classifyStatus(422, JSON.stringify({ error }), null, sanitise).kind).toBe('rejected');
  });

  test.each([401, 429, 500])('%i is not searched for a context length error', (status) => {
    expect(readUpstreamError(status, 'context_length_exceeded', null).code).not.toBe(
      'context_length_exceeded',
    );
  });

  test.each([400, 401, 404, 413, 422, 429, 500, 503, 504])('%i quotes nothing of the body', (status) => {
    const body = 'context_length_exceeded at http://10.1.2.3 for sk-secret';
    expect(JSON.stringify(readUpstreamError(status, body, null))).not.toMatch(/10\.1\.2\.3|sk-secret/);
  });
});

describe('an error inside an answer', () => {
  const message = 'Trying to keep the first 9999 tokens, but the context length is only 4096 tokens';

  test.each<[string, unknown, string]>([
    ['its code', { code: 'context_length_exceeded' }, 'context_length_exceeded'],
    ['its message, as in LM Studio', { message }, 'context_length_exceeded'],
    ['a message alone', message, 'context_length_exceeded'],
    ['a status, before its message', { code: 429, message }, 'upstream_rate_limited'],
    ['the name of a status', { code: null, type: 'overloaded_error' }, 'overloaded'],
    ['an unknown message', { message: 'boom' }, 'upstream_error'],
    ['the lack of any content', null, 'upstream_error'],
  ])('is classified by %s', (_name, error, code) => {
    expect(readReportedError(error).code).toBe(code);
  });
});

describe('the retry-after of a refusal', () => {
  test.each([
    [429, 7_000, 7_000],
    [429, 0, 0],
    [429, null, 5_000],
    [503, 7_000, 7_000],
    [503, null, 5_000],
    [529, null, 5_000],
    [500, 7_000, null],
    [400, 7_000, null],
  ])('for a %i with a retry-after of %j is %j', (status, said, expected) => {
    expect(readUpstreamError(status, '', said).retryAfterMs).toBe(expected);
  });

  test('names the upstream as the source of the limit', () => {
    expect(readUpstreamError(429, '', 7_000).limit).toEqual({
      source: 'upstream',
      kind: 'rate',
      limit: null,
      retryAfterMs: 7_000,
    });
  });
});
