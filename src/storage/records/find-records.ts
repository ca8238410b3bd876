import type { RecordFilter } from '../../domain/money/consumption.ts';
import { maxUsageRows } from '../../domain/ports/usage.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRows, sql, where } from '../statements.ts';
import { createUsage } from '../usage/usage-store.ts';
import { requestKeyOf } from './request-key.ts';
import type { RequestKey } from './request-key.ts';

/** Ended records behind a place, newest first. */
interface FoundRecords {
  readonly rows: readonly Row[];
  /** The record up to which a search was made that found too little on its way; `null` where it was made to its end. */
  readonly searchedTo: string | null;
}

/** How far a search for the records of a model goes, which no index has. */
export interface SearchLimits {
  /** How many records one read looks through: some milliseconds. */
  readonly recordsPerRead: number;
  /** How many such reads there are for one page at most. */
  readonly maxReads: number;
}

export const searchLimits: SearchLimits = { recordsPerRead: 2_000, maxReads: 100 };

/** The conditions of a filter and a place; a model is not among them, as no index has it. */
export function wantedOf({ keyId, from, to }: RecordFilter, before: RequestKey | null): Statement {
  const conditions: Statement[] = [];
  if (keyId !== undefined) conditions.push(sql`key_id = ${keyId}`);
  if (from !== undefined) conditions.push(sql`created_at >= ${from}`);
  // With both bounds at once SQLite searches by the time only, and reads every page before this one again.
  if (before !== null && (to === undefined || before.createdAtMs < to))
    conditions.push(sql`(created_at, tail) < (${before.createdAtMs}, unhex(${before.tail}))`);
  else if (to !== undefined) conditions.push(sql`created_at < ${to}`);
  return where(conditions);
}

/**
 * Finds ended records behind a place. Those of a model are looked for among all others, some thousand at a time; where there are
 * none, the search goes on with the last day in which the sums of usage have one.
 */
export async function findEnded(
  engine: Pick<Engine, 'read'>,
  filter: RecordFilter,
  limit: number,
  before: RequestKey | null,
  { recordsPerRead, maxReads }: SearchLimits,
): Promise<FoundRecords> {
  if (filter.model === undefined) {
    const page = sql`SELECT * FROM records${wantedOf(filter, before)} ORDER BY created_at DESC, tail DESC LIMIT ${limit}`;
    return { rows: await readRows(engine, page), searchedTo: null };
  }
  const rows: Row[] = [];
  let place = before;
  let searchedTo: string | null = null;
  let days: readonly number[] | null = null;
  for (let reads = 0; reads < maxReads; reads++) {
    const [found = [], [last] = []] = await engine.read([
      selectOfModel(filter, place, recordsPerRead, limit - rows.length),
      selectLast(filter, place, recordsPerRead),
    ]);
    rows.push(...found);
    if (rows.length >= limit || last === undefined) return { rows, searchedTo: null };
    searchedTo = String(last['request_id']);
    place = requestKeyOf(searchedTo);
    if (found.length > 0) continue;
    const { createdAtMs } = place;
    days ??= await listDays(engine, filter, createdAtMs);
    const day = days.findLast((startMs) => startMs <= createdAtMs);
    if (day === undefined) return { rows, searchedTo: null };
    if (day + dayMs <= createdAtMs) place = { createdAtMs: day + dayMs, tail: '' };
  }
  return { rows, searchedTo };
}

/** Those of a model among the next records, of whichever model. */
function selectOfModel(
  filter: RecordFilter,
  before: RequestKey | null,
  recordsPerRead: number,
  limit: number,
): Statement {
  return sql`SELECT records.* FROM (
      SELECT created_at, tail, model FROM records${wantedOf(filter, before)}
      ORDER BY created_at DESC, tail DESC LIMIT ${recordsPerRead}) AS passed
    JOIN records ON records.created_at = passed.created_at AND records.tail = passed.tail
    WHERE passed.model = ${filter.model ?? ''} ORDER BY passed.created_at DESC, passed.tail DESC LIMIT ${limit}`;
}

/** The last one of the next records; nothing where there are none behind them. */
function selectLast(filter: RecordFilter, before: RequestKey | null, recordsPerRead: number): Statement {
  return sql`SELECT request_id FROM records${wantedOf(filter, before)}
    ORDER BY created_at DESC, tail DESC LIMIT 1 OFFSET ${recordsPerRead - 1}`;
}

/** The days up to a time in which there is usage of a model, in their order. */
async function listDays(
  engine: Pick<Engine, 'read'>,
  { keyId, model, from = 0 }: RecordFilter,
  untilMs: number,
): Promise<readonly number[]> {
  const [fromMs, toMs] = [dayOf(from), dayOf(untilMs) + dayMs];
  const usage = createUsage(engine);
  const days: number[] = [];
  let after: string | null = null;
  do {
    const page = await usage.usage({
      by: ['day'],
      fromMs,
      toMs,
      where: { keyId, model },
      limit: maxUsageRows,
      after,
    });
    days.push(...(page?.rows ?? []).map(({ startMs }) => startMs ?? 0));
    after = page?.next ?? null;
  } while (after !== null);
  return days;
}
