import { describe, expect, test } from 'vitest';
import {
  dayWindow,
  decideTokens,
  hasTokenLimit,
  minuteWindow,
  tokenRefusal,
} from '../../src/domain/limits/token-limits.ts';

const limits = { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 };
const inMinute = (tokens: number, expiresInMs: number) => ({
  lengthMs: minuteWindow.lengthMs,
  tokens,
  expiresInMs,
});
const inDay = (tokens: number, expiresInMs: number) => ({
  lengthMs: dayWindow.lengthMs,
  tokens,
  expiresInMs,
});

describe('a limit of tokens', () => {
  test('is none without a value', () => {
    expect(hasTokenLimit(limits)).toBe(false);
    expect(decideTokens(limits, [inMinute(9, 9)])).toBeNull();
    expect(tokenRefusal(null)).toBeNull();
  });

  test('is reached when all tokens are used, until as many have left the window that one is left again', () => {
    const limited = { ...limits, tokensPerMinute: 10 };
    const state = decideTokens(limited, [inMinute(4, 3_000), inMinute(5, 1_000), inMinute(5, 2_001)]);
    expect(state).toMatchObject({ limit: 10, remaining: 0, resetMs: 1_000 });
    expect(decideTokens(limited, [inMinute(12, 3_000), inMinute(1, 1_000)])).toMatchObject({
      resetMs: 3_000,
    });
    expect(tokenRefusal(state)).toMatchObject({
      code: 'rate_limit_exceeded',
      message: 'This key may use 10 tokens in any 60 seconds and has reached that limit. Try again in 1s.',
      limit: { source: 'key', kind: 'tokens', limit: 10, retryAfterMs: 1_000 },
    });
  });

  test('is not reached as long as one token is left: what a request will use is not known', () => {
    const state = decideTokens({ ...limits, tokensPerMinute: 10 }, [inMinute(9, 1_000)]);
    expect(state).toMatchObject({ remaining: 1, resetMs: 1_000 });
    expect(tokenRefusal(state)).toBeNull();
    expect(decideTokens({ ...limits, tokensPerDay: 10 }, [inMinute(90, 1)])).toMatchObject({
      remaining: 10,
      resetMs: 0,
    });
  });

  test('with two windows is the one with the fewest tokens left, and the longest wait if both are reached', () => {
    const limited = { ...limits, tokensPerMinute: 10, tokensPerDay: 100 };
    const slices = [inMinute(10, 1_000), inDay(100, 70_000_000)];
    expect(decideTokens(limited, slices)).toMatchObject({ limit: 100, resetMs: 70_000_000 });
    expect(decideTokens(limited, slices.slice(0, 1))).toMatchObject({ limit: 10, remaining: 0 });
    expect(decideTokens(limited, [inDay(95, 1)])).toMatchObject({ limit: 100, remaining: 5 });
    expect(decideTokens(limited, [])).toMatchObject({ limit: 10, remaining: 10, resetMs: 0 });
  });
});
