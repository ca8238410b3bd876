import type {
  Attempt,
  ConsumptionRecord,
  RecordedFailure,
  RecordFilter,
} from '../../domain/money/consumption.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import type { Engine, Results, Row, Statement } from '../engine.ts';
import { raw, sql, where } from '../statements.ts';

/** How many records of a page are read at once: under a millisecond of the thread that serves requests, which come in between. */
const recordsAtOnce = 50;

/** Reads consumption records in pages, beside the units that write them. */
export function createRecordPages(engine: Engine): RecordPages {
  return {
    async listRecords(filter, limit, before) {
      const [row] = before === null ? [] : (await engine.read(selectCursor(before, filter.keyId))).flat();
      if (before !== null && row === undefined) return null;
      let cursor: RecordCursor | null =
        before === null ? null : { createdAtMs: Number(row?.['created_at']), requestId: before };
      const found: ConsumptionRecord[] = [];
      while (found.length <= limit) {
        const wanted = Math.min(limit + 1 - found.length, recordsAtOnce);
        const some = readPage(await engine.read(selectRecords(filter, wanted, cursor)), wanted);
        found.push(...some);
        if (some.length < wanted) break;
        cursor = some.at(-1) ?? cursor;
      }
      const records = found.slice(0, limit);
      return { records, next: found.length > limit ? (records.at(-1)?.requestId ?? null) : null };
    },
    async findRecord(requestId, keyId) {
      const [row] = (await engine.read(selectRecord(requestId, keyId))).flat();
      return row === undefined ? null : readRecord(row);
    },
  };
}

/** The record behind which a page begins, in the order of time and then of ids. */
interface RecordCursor {
  readonly createdAtMs: number;
  readonly requestId: string;
}

/** Where records are: the open ones apart, as they are few and change, and the others are many and stay. */
const tables = ['records', 'open_requests'] as const;

/** The columns of a record, of which an open one has no more than its beginning. */
const columnsIn = {
  records: '*',
  open_requests: `*, NULL AS outcome, NULL AS status, NULL AS input_tokens, NULL AS output_tokens, NULL AS usage_source,
    '[]' AS attempts, 0 AS charge, 0 AS unbooked, NULL AS first_byte_ms, NULL AS total_ms`,
} as const;

/** The record that a cursor names, in both tables; it must be one of the page's key, where the page has one. */
function selectCursor(requestId: string, keyId: string | undefined): readonly Statement[] {
  return selectById('created_at', requestId, keyId ?? null);
}

/** One record, of one key or of any, in both tables. */
function selectRecord(requestId: string, keyId: string | null): readonly Statement[] {
  return selectById(null, requestId, keyId);
}

function selectById(column: string | null, requestId: string, keyId: string | null): readonly Statement[] {
  const ofKey = keyId === null ? raw('') : sql` AND key_id = ${keyId}`;
  return tables.map(
    (table) =>
      sql`SELECT ${raw(column ?? columnsIn[table])} FROM ${raw(table)} WHERE request_id = ${requestId}${ofKey}`,
  );
}

/**
 * A page of ended records, newest first, and all open ones that belong on it or behind it. Each combination of filters has
 * an index that gives the page in its order.
 */
function selectRecords(
  filter: RecordFilter,
  limit: number,
  before: RecordCursor | null,
): readonly Statement[] {
  const { keyId, model, from, to } = filter;
  // With both bounds at once SQLite searches by the time only, and reads every page before this one again.
  const isBehindCursor = before !== null && (to === undefined || before.createdAtMs < to);
  const conditions: Statement[] = [];
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  if (from !== undefined) conditions.push(sql`created_at >= ${from}`);
  if (isBehindCursor)
    conditions.push(sql`(created_at, request_id) < (${before.createdAtMs}, ${before.requestId})`);
  else if (to !== undefined) conditions.push(sql`created_at < ${to}`);
  const wanted = where(conditions);
  return [
    sql`SELECT * FROM records${wanted} ORDER BY created_at DESC, request_id DESC LIMIT ${limit}`,
    sql`SELECT ${raw(columnsIn.open_requests)} FROM open_requests${wanted}`,
  ];
}

/** The page itself, from the rows of `selectRecords`. */
function readPage(results: Results, limit: number): readonly ConsumptionRecord[] {
  return results.flat().map(readRecord).toSorted(newestFirst).slice(0, limit);
}

function newestFirst(one: ConsumptionRecord, other: ConsumptionRecord): number {
  if (one.createdAtMs !== other.createdAtMs) return other.createdAtMs - one.createdAtMs;
  return one.requestId < other.requestId ? 1 : -1;
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
    tag: row['tag'] as ConsumptionRecord['tag'],
    group: row['group_name'] as ConsumptionRecord['group'],
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
    // Of a key without a balance, a budget alone has the hold.
    holdNanos: Math.max(Number(row['hold']), Number(row['budget_hold'] ?? 0)),
    chargeNanos: Number(row['charge']),
    unbookedNanos: Number(row['unbooked']),
    queuedMs: Number(row['queued_ms']),
    firstTextMs: number('first_byte_ms'),
    totalMs: number('total_ms'),
    failure: readFailure(row['failure']),
  };
}

/** The fields that older records do not have. Most attempts have no cause either, so an unset field is not written. */
type Stored = Omit<Attempt, 'startedMs' | 'cause' | 'upstreamError'> &
  Partial<Pick<Attempt, 'startedMs' | 'cause' | 'upstreamError'>>;

/** The attempts of a request as a record holds them. */
export function writeAttempts(attempts: readonly Attempt[]): string {
  return JSON.stringify(
    attempts.map(({ startedMs, cause, upstreamError, ...attempt }): Stored => ({
      ...attempt,
      ...(startedMs === null ? {} : { startedMs }),
      ...(cause === null ? {} : { cause }),
      ...(upstreamError === null ? {} : { upstreamError }),
    })),
  );
}

/** The attempts in a record, of this version or an older one. */
export function readAttempts(text: string): readonly Attempt[] {
  const stored = JSON.parse(text) as readonly Stored[];
  return stored.map((attempt) =>
    Object.assign({ startedMs: null, cause: null, upstreamError: null }, attempt),
  );
}

/** Why a request failed, as a record holds it: as JSON, since not every text can be stored as it is. */
export function writeFailure(failure: RecordedFailure | null | undefined): string | null {
  return failure ? JSON.stringify(failure) : null;
}

/** Why a request failed, as its record says. */
function readFailure(text: unknown): RecordedFailure | null {
  return typeof text === 'string' ? (JSON.parse(text) as RecordedFailure) : null;
}
