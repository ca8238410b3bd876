import type { ConsumptionRecord, RecordFilter } from '../domain/consumption.ts';
import type { Row, Statement } from './engine.ts';
import { readAttempts } from './stored-attempts.ts';

/** The record behind which a page begins, in the order of time and then of ids. */
export interface RecordCursor {
  readonly createdAtMs: number;
  readonly requestId: string;
}

/** The record that a cursor names; it must be one of the page's key, where the page has one. */
export function selectCursor(requestId: string, keyId: string | undefined): Statement {
  const sql = 'SELECT created_at FROM records WHERE request_id = ?';
  if (keyId === undefined) return { sql, values: [requestId] };
  return { sql: `${sql} AND key_id = ?`, values: [requestId, keyId] };
}

/** A page of records, newest first. Each combination of filters has an index that gives the page in its order. */
export function selectRecords(filter: RecordFilter, limit: number, before: RecordCursor | null): Statement {
  const { keyId, model, from, to } = filter;
  // With both bounds at once SQLite searches by the time only, and reads every page before this one again.
  const isBehindCursor = before !== null && (to === undefined || before.createdAtMs < to);
  const conditions: readonly (readonly [string, Statement['values']])[] = [
    ...(keyId === undefined ? [] : [['key_id = ?', [keyId]] as const]),
    ...(model === undefined ? [] : [['model = ?', [model]] as const]),
    ...(from === undefined ? [] : [['created_at >= ?', [from]] as const]),
    ...(isBehindCursor
      ? [['(created_at, request_id) < (?, ?)', [before.createdAtMs, before.requestId]] as const]
      : to === undefined
        ? []
        : [['created_at < ?', [to]] as const]),
  ];
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.map(([sql]) => sql).join(' AND ')}`;
  return {
    sql: `SELECT * FROM records ${where} ORDER BY created_at DESC, request_id DESC LIMIT ?`,
    values: [...conditions.flatMap(([, values]) => values), limit],
  };
}

/** One record, of one key or of any. */
export function selectRecord(requestId: string, keyId: string | null): Statement {
  const sql = 'SELECT * FROM records WHERE request_id = ?';
  if (keyId === null) return { sql, values: [requestId] };
  return { sql: `${sql} AND key_id = ?`, values: [requestId, keyId] };
}

export function readRecord(row: Row): ConsumptionRecord {
  const number = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const inputTokens = number('input_tokens');
  const outputTokens = number('output_tokens');
  return {
    requestId: String(row['request_id']),
    keyId: String(row['key_id']),
    createdAtMs: Number(row['created_at']),
    protocol: row['protocol'] as ConsumptionRecord['protocol'],
    mode: row['mode'] as ConsumptionRecord['mode'],
    model: String(row['model']),
    upstream: String(row['upstream']),
    outcome: row['outcome'] as ConsumptionRecord['outcome'],
    status: number('status'),
    usage:
      inputTokens === null || outputTokens === null
        ? null
        : {
            inputTokens,
            cachedInputTokens: number('cached_input_tokens') ?? 0,
            cacheWriteTokens: number('cache_write_tokens') ?? 0,
            outputTokens,
            reasoningTokens: number('reasoning_tokens') ?? 0,
            totalTokens: inputTokens + outputTokens,
          },
    usageSource: row['usage_source'] as ConsumptionRecord['usageSource'],
    price: {
      input: Number(row['price_input']),
      cachedInput: Number(row['price_cached_input']),
      cacheWrite: Number(row['price_cache_write']),
      output: Number(row['price_output']),
      request: Number(row['price_request']),
    },
    attempts: readAttempts(String(row['attempts'])),
    holdNanos: Number(row['hold']),
    chargeNanos: Number(row['charge']),
    unbookedNanos: Number(row['unbooked']),
    queuedMs: Number(row['queued_ms']),
    firstTextMs: number('first_byte_ms'),
    totalMs: number('total_ms'),
  };
}
