import type { SettledRecord } from '../../domain/money/consumption.ts';
import type { FixedUnit, NamedValues } from '../engine.ts';
import { beginningTypes } from './open-statement.ts';
import { valuesOfBudget } from './settle-in-budgets.ts';
import { writeAttempts, writeFailure } from './stored-attempts.ts';

/** Columns of a record: the prices that a settlement may set anew, what only the beginning says, and how it ended. */
export const pricedColumns = ['price_input', 'price_cached_input', 'price_cache_write', 'price_output'];
export const begunColumns = ['created_at', 'protocol', 'mode', 'model', 'queued_ms', 'tag', 'group_name'];
export const tokenColumns = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
];
export const endedColumns = [
  'outcome',
  'attempts',
  'status',
  'failure',
  'first_byte_ms',
  'total_ms',
  'usage_source',
];

function integers(columns: readonly string[]): FixedUnit['takes'] {
  return Object.fromEntries(columns.map((column) => [column, 'bigint']));
}

/** The types of the values of every settlement. Those of the beginning are for a record whose beginning is nowhere. */
export const settledTypes: FixedUnit['takes'] = {
  request_id: 'text',
  settlement: 'text',
  charge: 'bigint',
  settled_at: 'bigint',
  outcome: 'text',
  upstream: 'text',
  attempts: 'text',
  status: 'bigint',
  ...integers(tokenColumns),
  usage_source: 'text',
  ...integers(pricedColumns),
  first_byte_ms: 'bigint',
  total_ms: 'bigint',
  failure: 'text',
  begun_key_id: 'text',
  ...(Object.fromEntries(
    Object.entries(beginningTypes).map(([name, type]) => [`begun_${name}`, type]),
  ) as FixedUnit['takes']),
  begun_hold: 'bigint',
};

/** The values of a settlement. */
export function namedToSettle(record: SettledRecord, settlement: string, settledAtMs: number): NamedValues {
  const { usage, price, begun } = record;
  const values: NamedValues = {
    request_id: record.requestId,
    settlement,
    charge: record.chargeNanos,
    settled_at: settledAtMs,
    outcome: record.outcome,
    upstream: record.upstream,
    attempts: writeAttempts(record.attempts),
    status: record.status,
    input_tokens: usage?.inputTokens ?? null,
    cached_input_tokens: usage?.cachedInputTokens ?? null,
    cache_write_tokens: usage?.cacheWriteTokens ?? null,
    output_tokens: usage?.outputTokens ?? null,
    reasoning_tokens: usage?.reasoningTokens ?? null,
    usage_source: record.usageSource,
    price_input: price?.input ?? null,
    price_cached_input: price?.cachedInput ?? null,
    price_cache_write: price?.cacheWrite ?? null,
    price_output: price?.output ?? null,
    first_byte_ms: record.firstTextMs === null ? null : Math.round(record.firstTextMs),
    total_ms: Math.round(record.totalMs),
    failure: writeFailure(record.failure),
    begun_key_id: begun?.keyId ?? null,
    begun_created_at: begun?.createdAtMs ?? null,
    begun_protocol: begun?.protocol ?? null,
    begun_mode: begun?.mode ?? null,
    begun_model: begun?.model ?? null,
    begun_upstream: begun?.upstream ?? null,
    begun_queued_ms: begun === null ? null : Math.round(begun.queuedMs),
    begun_price_input: begun?.price.input ?? null,
    begun_price_cached_input: begun?.price.cachedInput ?? null,
    begun_price_cache_write: begun?.price.cacheWrite ?? null,
    begun_price_output: begun?.price.output ?? null,
    begun_price_request: begun?.price.request ?? null,
    begun_tag: begun?.tag ?? null,
    begun_group_name: begun?.group ?? null,
    begun_hold: begun?.holdNanos ?? null,
  };
  return Object.assign(values, ...(begun?.budgets ?? []).map(valuesOfBudget)) as NamedValues;
}
