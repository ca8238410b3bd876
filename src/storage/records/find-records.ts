import { saysCause } from '../../domain/money/consumption.ts';
import type { ConsumptionRecord, RecordFilter } from '../../domain/money/consumption.ts';
import { maxUsageRows } from '../../domain/ports/usage.ts';
import { dayMs, dayOf } from '../../shared/duration.ts';
import type { Engine, Statement } from '../engine.ts';
import { hasFailed } from '../schema/requests.ts';
import { joined, raw, readRows, sql, where } from '../statements.ts';
import { createUsage } from '../usage/usage-store.ts';
import { readRecord } from './read-record.ts';
import {
  asksOfEnd,
  beginningConditions,
  figureConditions,
  kindConditions,
  mayHaveCause,
  placeConditions,
  saysOfFailure,
} from './record-filter.ts';
import { requestKeyOf } from './request-key.ts';
import type { RequestKey } from './request-key.ts';

/** Ended records behind a place, newest first. */
interface FoundRecords {
  readonly records: readonly ConsumptionRecord[];
  /** The record up to which a search was made that found too little on its way; `null` where it was made to its end. */
  readonly searchedTo: string | null;
}

/** How far a search goes for records by what no index has. */
export interface SearchLimits {
  /** How many records one read looks through where they lie side by side: a few milliseconds. */
  readonly recordsPerRead: number;
  /** How many such reads there are for one page at most. */
  readonly maxReads: number;
}

export const searchLimits: SearchLimits = { recordsPerRead: 10_000, maxReads: 100 };

/** How many times as long it takes to look at a record that an index has found. */
const indexedCost = 5;

/** Records among which some are looked for, in the order of time. */
interface Searched {
  readonly filter: RecordFilter;
  /** Whether all that is looked for is among the failures, of which there is an index. */
  readonly isOfFailures: boolean;
  readonly recordsPerRead: number;
}

/** Whether a filter asks for more than a key and a time. */
export function isSearch(filter: RecordFilter): boolean {
  return asksOfEnd(filter) || beginningConditions(filter).length > 0;
}

/**
 * Finds ended records behind a place. Those that no index has are looked for among all others, or among the failures where they
 * can be nowhere else, some thousand at a time. Where there are none, the search goes on with the last day in which the sums of
 * usage have one, and it does not begin where no kind is theirs.
 */
export async function findEnded(
  engine: Pick<Engine, 'read'>,
  filter: RecordFilter,
  limit: number,
  before: RequestKey | null,
  limits: SearchLimits,
): Promise<FoundRecords> {
  if (!isSearch(filter)) {
    const page = sql`SELECT * FROM records${wantedOf(filter, before)} ORDER BY created_at DESC, tail DESC LIMIT ${limit}`;
    return { records: (await readRows(engine, page)).map(readRecord), searchedTo: null };
  }
  const searched = await planSearch(engine, filter, limits);
  const records: ConsumptionRecord[] = [];
  let place = before;
  let searchedTo: string | null = null;
  let days: readonly number[] | null = null;
  if (searched === null) return { records, searchedTo };
  for (let reads = 0; reads < limits.maxReads; reads++) {
    const wanted = limit - records.length;
    const [rows = [], [last] = []] = await engine.read([
      selectFound(searched, place, wanted),
      selectLast(searched, place),
    ]);
    const found = rows.map(readRecord);
    const { cause } = filter;
    records.push(...(cause === undefined ? found : found.filter((record) => saysCause(record, cause))));
    const isCut = found.length === wanted;
    if (records.length >= limit || (last === undefined && !isCut)) return { records, searchedTo: null };
    searchedTo = isCut ? (found.at(-1)?.requestId ?? null) : String(last?.['request_id']);
    place = requestKeyOf(String(searchedTo));
    if (found.length > 0 || !isCounted(filter)) continue;
    const { createdAtMs } = place;
    days ??= await listDays(engine, filter, createdAtMs);
    const day = days.findLast((startMs) => startMs <= createdAtMs);
    if (day === undefined) return { records, searchedTo: null };
    if (day + dayMs <= createdAtMs) place = { createdAtMs: day + dayMs, tail: '' };
  }
  return { records, searchedTo };
}

/** The conditions of a view by the key and the time of a filter, and a place. */
export function wantedOf(filter: RecordFilter, before: RequestKey | null): Statement {
  const { keyId } = filter;
  const ofKey = keyId === undefined ? [] : [sql`key_id = ${keyId}`];
  return where([...ofKey, ...placeConditions(filter, before)]);
}

/** Where a search looks; `null` where no record can be found, as none has such a kind. */
async function planSearch(
  engine: Pick<Engine, 'read'>,
  filter: RecordFilter,
  { recordsPerRead }: SearchLimits,
): Promise<Searched | null> {
  const [kinds] = await readRows(
    engine,
    sql`SELECT count(*) AS count, count(CASE WHEN outcome IN ('completed', 'incomplete') THEN 1 END) AS finished
      FROM record_kinds${where(kindConditions(filter))}`,
  );
  if (Number(kinds?.['count']) === 0) return null;
  const hasIndex = filter.keyId !== undefined;
  const isOfFailures = !hasIndex && (saysOfFailure(filter) || Number(kinds?.['finished']) === 0);
  const atOnce = hasIndex || isOfFailures ? Math.ceil(recordsPerRead / indexedCost) : recordsPerRead;
  return { filter, isOfFailures, recordsPerRead: atOnce };
}

/** The next records among which some are looked for. The account is asked for apart: it is an index of records. */
function selectNext(
  { filter, isOfFailures }: Searched,
  before: RequestKey | null,
  columns: string,
): Statement {
  const { keyId } = filter;
  const conditions = where([
    ...(keyId === undefined ? [] : [sql`account = (SELECT number FROM accounts WHERE key_id = ${keyId})`]),
    ...(isOfFailures ? [raw(hasFailed)] : []),
    ...placeConditions(filter, before),
  ]);
  return sql`SELECT ${raw(columns)} FROM record_rows${conditions} ORDER BY created_at DESC, tail DESC`;
}

/** Those among the next records that a filter wants. */
function selectFound(searched: Searched, before: RequestKey | null, limit: number): Statement {
  const { filter, recordsPerRead } = searched;
  const kinds = kindConditions(filter);
  const conditions = [
    ...(kinds.length === 0 ? [] : [sql`passed.kind IN (SELECT number FROM record_kinds${where(kinds)})`]),
    ...figureConditions(filter),
    ...(saysOfFailure(filter) ? [raw('passed.has_failed')] : []),
    ...(filter.cause === undefined ? [] : [mayHaveCause(filter.cause)]),
  ];
  const texts = saysOfFailure(filter) ? `, attempts, failure, ${hasFailed} AS has_failed` : '';
  const next = selectNext(searched, before, `created_at, tail, kind, total_ms, charge${texts}`);
  return sql`SELECT records.* FROM (${next} LIMIT ${recordsPerRead}) AS passed
    JOIN records ON records.created_at = passed.created_at AND records.tail = passed.tail
    WHERE ${joined(conditions, ' AND ')} ORDER BY passed.created_at DESC, passed.tail DESC LIMIT ${limit}`;
}

/** The last one of the next records; nothing where there are none behind them. */
function selectLast(searched: Searched, before: RequestKey | null): Statement {
  const next = selectNext(searched, before, 'created_at, tail');
  return sql`SELECT records.request_id FROM (${next} LIMIT 1 OFFSET ${searched.recordsPerRead - 1}) AS last
    JOIN records ON records.created_at = last.created_at AND records.tail = last.tail`;
}

/** Whether the sums of usage tell days with what a filter asks for from others. */
function isCounted(filter: RecordFilter): boolean {
  return beginningConditions(filter).length > 0 || filter.outcome !== undefined;
}

/** A name of a filter, as the sums of usage have it: `null` for none. */
function orNone(name: string | undefined): string | null | undefined {
  return name === '' ? null : name;
}

/** The days up to a time in which there is usage that a filter may want, in their order. */
async function listDays(
  engine: Pick<Engine, 'read'>,
  { keyId, from = 0, group, tag, ...filter }: RecordFilter,
  untilMs: number,
): Promise<readonly number[]> {
  const [fromMs, toMs] = [dayOf(from), dayOf(untilMs) + dayMs];
  const usage = createUsage(engine);
  const { model, upstream, outcome } = filter;
  const days: number[] = [];
  let after: string | null = null;
  do {
    const page = await usage.usage({
      by: ['day'],
      fromMs,
      toMs,
      where: { keyId, model, upstream, outcome, group: orNone(group), tag: orNone(tag) },
      limit: maxUsageRows,
      after,
    });
    days.push(...(page?.rows ?? []).map(({ startMs }) => startMs ?? 0));
    after = page?.next ?? null;
  } while (after !== null);
  return days;
}
