import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { beginningOf, openedRecord } from './stored-rows.ts';

/** The settlement of a request that was completed. */
export function settledRecord(requestId: string): SettledRecord {
  return {
    requestId,
    begun: beginningOf(openedRecord),
    outcome: 'completed',
    upstream: 'u',
    attempts: [],
    status: 200,
    usage: {
      inputTokens: 1,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      outputTokens: 2,
      reasoningTokens: 0,
      totalTokens: 3,
    },
    usageSource: 'upstream',
    price: free,
    chargeNanos: 5,
    firstTextMs: null,
    totalMs: 1.5,
  };
}
