import { describe, expect, test } from 'vitest';
import { groupRefusal } from '../../src/domain/limits/groups.ts';
import { limitRefusal } from '../../src/domain/limits/limits.ts';
import type { LimitDecision } from '../../src/domain/limits/limits.ts';

const limits = { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 };
const granted: LimitDecision = { verdict: 'granted', inFlight: 1, remainingStarts: 59, resetMs: 60_000 };

describe('the refusal for a limit decision', () => {
  test('is null when the start was granted', () => {
    expect(limitRefusal(granted, limits)).toBeNull();
  });

  test('for the concurrency limit names the requests in progress and a retry in one second', () => {
    const refusal = limitRefusal({ ...granted, verdict: 'concurrency', inFlight: 2 }, limits);
    expect(refusal).toMatchObject({
      code: 'concurrency_limit_exceeded',
      limit: { source: 'key', kind: 'concurrency', limit: 2, inFlight: 2, retryAfterMs: 1_000 },
      retryAfterMs: 1_000,
      param: null,
    });
    expect(refusal?.message).toMatch(/\b2 requests\b.*\bhas 2\b/);
  });

  test('for the rate limit names the time until the next start, rounded up', () => {
    const decision: LimitDecision = { verdict: 'rate', inFlight: 0, remainingStarts: 0, resetMs: 1_001 };
    const refusal = limitRefusal(decision, limits);
    expect(refusal).toMatchObject({
      code: 'rate_limit_exceeded',
      limit: { source: 'key', kind: 'rate', limit: 60, retryAfterMs: 1_001 },
      retryAfterMs: 1_001,
    });
    expect(refusal?.message).toMatch(/\b60 requests\b.*\b2s\b/);
  });

  test.each(['concurrency', 'rate'] as const)(
    'for %s avoids the words of billing errors, which SDKs never retry',
    (verdict) => {
      expect(limitRefusal({ ...granted, verdict }, limits)?.message).not.toMatch(/billing|quota|credit/i);
    },
  );
});

describe('the refusal of a request that finds no slot', () => {
  const decision = { ...granted, verdict: 'concurrency', inFlight: 2 } as const;
  const group = { name: 'research', concurrency: 2 };
  const patient = { ...limits, queueWaitMs: 90_000 };

  test('names the setting that lets requests wait, where the key has none', () => {
    const hint = 'The operator can let this key wait for a slot: queueWait.';
    expect(limitRefusal(decision, limits)?.message).toMatch(hint);
    expect(groupRefusal(group, decision, 0).message).toMatch(hint);
    const reads = { one: 'one read', many: 'reads', canWait: false };
    expect(limitRefusal(decision, limits, reads)?.message).toMatch(/Wait for one of them to end\.$/);
  });

  test('says how long it waited, or that the queue is full and how many wait in it', () => {
    expect(limitRefusal(decision, patient)?.message).toMatch(/None of them ended within 90s\.$/);
    expect(groupRefusal(group, decision, 90_000).message).toMatch(/None of them ended within 90s\.$/);
    const full = { ...decision, isQueueFull: true } as const;
    const line = /100 requests of this key wait for a slot already: the queue is full\.$/;
    expect(limitRefusal(full, patient)?.message).toMatch(line);
    expect(groupRefusal(group, full, 90_000).message).toMatch(/100 requests of the group wait .*full\.$/);
  });
});
