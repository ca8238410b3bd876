import type { ConsumptionRecord, RecordFilter } from '../domain/consumption.ts';
import type { Row, Statement } from './engine.ts';

/** A page of records, newest first, behind the record that the cursor names. */
export function selectRecords(filter: RecordFilter, limit: number, before: string | null): Statement {
  const { keyId, model, from, to } = filter;
  const conditions: readonly (readonly [string, string | number | null])[] = [
    ['key_id = ?', keyId ?? null],
    ['model = ?', model ?? null],
    ['created_at >= ?', from ?? null],
    ['created_at < ?', to ?? null],
    ['(created_at, request_id) < (SELECT created_at, request_id FROM records WHERE request_id = ?)', before],
  ];
  const wanted = conditions.filter(([, value]) => value !== null);
  const where = wanted.length === 0 ? '' : `WHERE ${wanted.map(([sql]) => sql).join(' AND ')}`;
  return {
    sql: `SELECT * FROM records ${where} ORDER BY created_at DESC, request_id DESC LIMIT ?`,
    values: [...wanted.map(([, value]) => value), limit],
  };
}

/** One record; of one key alone if it is named. */
export function selectRecord(requestId: string, keyId: string): Statement {
  return { sql: 'SELECT * FROM records WHERE request_id = ? AND key_id = ?', values: [requestId, keyId] };
}

export function readRecord(row: Row): ConsumptionRecord {
  const number = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const inputTokens = number('input_tokens');
  const outputTokens = number('output_tokens');
  return {
    requestId: String(row['request_id']),
    keyId: String(row['key_id']),
    createdAt: Number(row['created_at']),
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
            outputTokens,
            reasoningTokens: number('reasoning_tokens') ?? 0,
            totalTokens: inputTokens + outputTokens,
          },
    usageSource: row['usage_source'] as ConsumptionRecord['usageSource'],
    price: {
      input: Number(row['price_input']),
      cachedInput: Number(row['price_cached_input']),
      output: Number(row['price_output']),
    },
    attempts: JSON.parse(String(row['attempts'])) as ConsumptionRecord['attempts'],
    holdNanos: Number(row['hold']),
    chargeNanos: Number(row['charge']),
    queuedMs: Number(row['queued_ms']),
    firstByteMs: number('first_byte_ms'),
    totalMs: number('total_ms'),
  };
}
