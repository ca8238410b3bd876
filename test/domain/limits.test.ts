import { describe, expect, test } from 'vitest';
import { limitRefusal } from '../../src/domain/limits.ts';
import type { LimitDecision } from '../../src/domain/limits.ts';

const limits = { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 };
const granted: LimitDecision = { verdict: 'granted', inFlight: 1, remainingStarts: 59, resetMs: 60_000 };

describe('a standing', () => {
  test('that was granted is no refusal', () => {
    expect(limitRefusal(granted, limits)).toBeNull();
  });

  test('over the concurrency limit says how many are running, and to come back in a second', () => {
    const refusal = limitRefusal({ ...granted, verdict: 'concurrency', inFlight: 2 }, limits);
    expect(refusal).toMatchObject({
      code: 'concurrency_limit_exceeded',
      limit: { source: 'key', kind: 'concurrency', limit: 2, inFlight: 2, retryAfterMs: 1_000 },
      retryAfterMs: 1_000,
      param: null,
    });
    expect(refusal?.message).toMatch(/\b2 requests\b.*\bhas 2\b/);
  });

  test('over the rate says when the next start is given back, rounded up', () => {
    const standing: LimitDecision = { verdict: 'rate', inFlight: 0, remainingStarts: 0, resetMs: 1_001 };
    const refusal = limitRefusal(standing, limits);
    expect(refusal).toMatchObject({
      code: 'rate_limit_exceeded',
      limit: { source: 'key', kind: 'rate', limit: 60, retryAfterMs: 1_001 },
      retryAfterMs: 1_001,
    });
    expect(refusal?.message).toMatch(/\b60 requests\b.*\b2s\b/);
  });

  test.each(['concurrency', 'rate'] as const)(
    'over the limit of %s does not sound like a matter of money, which SDKs read as final',
    (verdict) => {
      expect(limitRefusal({ ...granted, verdict }, limits)?.message).not.toMatch(/billing|quota|credit/i);
    },
  );
});
