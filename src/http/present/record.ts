import type { Attempt, ConsumptionRecord } from '../../domain/money/consumption.ts';
import type { UpstreamError, Usage } from '../../protocol/text.ts';
import { formatUsd } from '../../shared/money.ts';
import { writeCsv, writeCsvHeader, writeCsvLine } from './csv.ts';
import type { CsvColumn } from './csv.ts';
import { isoTime } from './iso-time.ts';
import { presentPrice } from './price.ts';

/** A consumption record as JSON for operators. */
export function presentRecord(record: ConsumptionRecord) {
  const attempts = record.attempts.map((attempt) => ({
    ...presentAttempt(attempt),
    cause: attempt.cause,
    upstream_error: presentUpstreamError(attempt.upstreamError),
  }));
  const shown = present(record, record.upstream, attempts);
  const timings = { ...shown.timings, settled_ms: record.settledMs };
  return { ...shown, timings, cause: record.failure?.cause ?? null };
}

/** A consumption record as JSON. */
export type PresentedRecord = ReturnType<typeof presentRecord>;

/** Whether the holder of a key sees which upstreams its requests went to. */
export type UpstreamsInReceipts = 'shown' | 'hidden';

/**
 * The receipt of one request, as JSON for the holder of its key. Causes are the operator's, as are the upstream's words,
 * unless the request was at fault.
 */
export function presentReceipt(record: ConsumptionRecord, upstreams: UpstreamsInReceipts): object {
  if (upstreams === 'hidden') return present(record, null, []);
  const attempts = record.attempts.map((attempt) => ({
    ...presentAttempt(attempt),
    ...(attempt.result === 'refused' && attempt.upstreamError !== null
      ? { upstream_error: presentUpstreamError(attempt.upstreamError) }
      : {}),
  }));
  return present(record, record.upstream, attempts);
}

function present<Shown>(record: ConsumptionRecord, upstream: string | null, attempts: readonly Shown[]) {
  const { usage, price } = record;
  return {
    request_id: record.requestId,
    key_id: record.keyId,
    created_at: isoTime(record.createdAtMs),
    protocol: record.protocol,
    mode: record.mode,
    model: record.model,
    tag: record.tag,
    group: record.group,
    upstream,
    outcome: record.outcome,
    status: record.status,
    code: record.failure?.code ?? null,
    usage: presentUsage(usage),
    usage_source: record.usageSource,
    price: presentPrice(price),
    hold: formatUsd(record.holdNanos),
    charge: formatUsd(record.chargeNanos),
    timings: { queued_ms: record.queuedMs, first_byte_ms: record.firstTextMs, total_ms: record.totalMs },
    attempts,
  };
}

function presentAttempt({ upstream, model, result, startedMs, durationMs, usage }: Attempt) {
  return {
    upstream,
    model,
    result,
    started_ms: startedMs,
    duration_ms: durationMs,
    usage: presentUsage(usage),
  };
}

/** What an upstream said of a failure, in sanitised words. */
export function presentUpstreamError(error: UpstreamError | null) {
  return error === null ? null : { status: error.status, code: error.code, message: error.message };
}

function presentUsage(usage: Usage | null) {
  if (usage === null) return null;
  return {
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    total_tokens: usage.totalTokens,
  };
}

/** The columns of records in CSV. */
const csvColumns: readonly CsvColumn<ConsumptionRecord>[] = [
  ['request_id', ({ requestId }) => requestId],
  ['key_id', ({ keyId }) => keyId],
  ['created_at', ({ createdAtMs }) => isoTime(createdAtMs)],
  ['protocol', ({ protocol }) => protocol],
  ['mode', ({ mode }) => mode],
  ['model', ({ model }) => model],
  ['upstream', ({ upstream }) => upstream],
  ['outcome', ({ outcome }) => outcome],
  ['status', ({ status }) => status],
  ['input_tokens', ({ usage }) => usage?.inputTokens ?? null],
  ['cached_input_tokens', ({ usage }) => usage?.cachedInputTokens ?? null],
  ['cache_write_tokens', ({ usage }) => usage?.cacheWriteTokens ?? null],
  ['output_tokens', ({ usage }) => usage?.outputTokens ?? null],
  ['reasoning_tokens', ({ usage }) => usage?.reasoningTokens ?? null],
  ['usage_source', ({ usageSource }) => usageSource],
  ['price_input', ({ price }) => formatUsd(price.input)],
  ['price_cached_input', ({ price }) => formatUsd(price.cachedInput)],
  ['price_cache_write', ({ price }) => formatUsd(price.cacheWrite)],
  ['price_output', ({ price }) => formatUsd(price.output)],
  ['price_request', ({ price }) => formatUsd(price.request)],
  ['attempts', ({ attempts }) => attempts.length],
  ['hold', ({ holdNanos }) => formatUsd(holdNanos)],
  ['charge', ({ chargeNanos }) => formatUsd(chargeNanos)],
  ['queued_ms', ({ queuedMs }) => queuedMs],
  ['first_byte_ms', ({ firstTextMs }) => firstTextMs],
  ['total_ms', ({ totalMs }) => totalMs],
  ['tag', ({ tag }) => tag],
  ['group', ({ group }) => group],
];

/** Records as CSV (RFC 4180) with a header line. */
export function presentRecordsAsCsv(records: readonly ConsumptionRecord[]): string {
  return writeCsv(records, csvColumns);
}

/** A record as a line of JSON, with all that is stored of it: no other copy will be left. */
export function writeArchivedRecord(record: ConsumptionRecord): string {
  return JSON.stringify({ ...presentRecord(record), unbooked: formatUsd(record.unbookedNanos) });
}

const archiveColumns: readonly CsvColumn<ConsumptionRecord>[] = [
  ...csvColumns,
  ['unbooked', ({ unbookedNanos }) => formatUsd(unbookedNanos)],
  ['failure_json', ({ failure }) => (failure ? JSON.stringify(failure) : null)],
  ['attempts_json', (record) => JSON.stringify(presentRecord(record).attempts)],
];

/** The header line of archived records in CSV. */
export const archivedCsvHeader = writeCsvHeader(archiveColumns);

/** A record as a line of CSV: no value has a line feed in it. */
export function writeArchivedCsv(record: ConsumptionRecord): string {
  return writeCsvLine(record, archiveColumns);
}
