import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { settledRecord as plain, usageOf } from './stored-rows.ts';

/** The settlement of a request that was completed. */
export function settledRecord(requestId: string): SettledRecord {
  return {
    ...plain,
    requestId,
    upstream: 'u',
    usage: usageOf(1, { outputTokens: 2 }),
    usageSource: 'upstream',
    price: free,
    chargeNanos: 5,
    totalMs: 1.5,
  };
}
