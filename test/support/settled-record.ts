import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { requestIdFor } from './request-ids.ts';
import { beginningOf, openedRecord } from './stored-rows.ts';

/** The settlement of a request with a name, which was completed. */
export function settledRecord(name: string): SettledRecord {
  return {
    requestId: requestIdFor(name),
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
