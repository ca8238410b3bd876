import type { ConsumptionRecord } from '../../domain/money/consumption.ts';
import type { Row } from '../engine.ts';
import { readAttempts, readFailure } from './stored-attempts.ts';

/** A record, from a row of its view. */
export function readRecord(row: Row): ConsumptionRecord {
  const number = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const inputTokens = number('input_tokens');
  const outputTokens = number('output_tokens');
  const usage =
    inputTokens === null || outputTokens === null
      ? null
      : {
          inputTokens,
          cachedInputTokens: number('cached_input_tokens') ?? 0,
          cacheWriteTokens: number('cache_write_tokens') ?? 0,
          outputTokens,
          reasoningTokens: number('reasoning_tokens') ?? 0,
          totalTokens: inputTokens + outputTokens,
        };
  const createdAtMs = Number(row['created_at']);
  const settledAtMs = number('settled_at');
  return {
    requestId: String(row['request_id']),
    keyId: String(row['key_id']),
    createdAtMs,
    protocol: row['protocol'] as ConsumptionRecord['protocol'],
    mode: row['mode'] as ConsumptionRecord['mode'],
    model: String(row['model']),
    upstream: String(row['upstream']),
    tag: row['tag'] as ConsumptionRecord['tag'],
    group: row['group_name'] as ConsumptionRecord['group'],
    outcome: row['outcome'] as ConsumptionRecord['outcome'],
    status: number('status'),
    usage,
    usageSource: row['usage_source'] as ConsumptionRecord['usageSource'],
    price: {
      input: Number(row['price_input']),
      cachedInput: Number(row['price_cached_input']),
      cacheWrite: Number(row['price_cache_write']),
      output: Number(row['price_output']),
      request: Number(row['price_request']),
    },
    attempts: readAttempts(row, usage),
    // Of a key without a balance, a budget alone has the hold.
    holdNanos: Math.max(Number(row['hold']), Number(row['budget_hold'] ?? 0)),
    chargeNanos: Number(row['charge']),
    unbookedNanos: Number(row['unbooked']),
    queuedMs: Number(row['queued_ms']),
    firstTextMs: number('first_byte_ms'),
    totalMs: number('total_ms'),
    settledMs: settledAtMs === null ? null : settledAtMs - createdAtMs,
    failure: readFailure(row['failure']),
  };
}
