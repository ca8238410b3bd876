import type { ConsumptionRecord, RecordFilter } from '../../domain/money/consumption.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import type { Engine, Statement } from '../engine.ts';
import { raw, readRows, sql, where } from '../statements.ts';
import { findEnded, isSearch, searchLimits, wantedOf } from './find-records.ts';
import { readRecord } from './read-record.ts';
import { asksOfEnd, beginningConditions } from './record-filter.ts';
import { findRequestKey, isRequest, requestKeyOf } from './request-key.ts';
import type { RequestKey } from './request-key.ts';

/** How many records of a page that is no search are read at once: under a millisecond of the thread that serves requests. */
const recordsAtOnce = 50;

/** Reads consumption records in pages, beside the units that write them. */
export function createRecordPages(engine: Engine, limits = searchLimits): RecordPages {
  return {
    async listRecords(filter, limit, before) {
      let cursor: RequestKey | null = null;
      if (before !== null) {
        cursor = findRequestKey(before);
        if (cursor === null) return null;
        // It must be one of the page's key, where the page has one. One that was removed meanwhile still says where it was.
        const [[removed] = [], ...found] = await engine.read([
          selectRemovedBefore,
          ...selectRecord(cursor, filter.keyId),
        ]);
        const isRemoved = cursor.createdAtMs < Number(removed?.['removed_before'] ?? 0);
        if (!isRemoved && found.flat().length === 0) return null;
      }
      // Open ones first, by their ids: one that ends meanwhile is found again, and is one record.
      const found = new Map<string, ConsumptionRecord>();
      const add = (records: readonly ConsumptionRecord[]): void => {
        for (const record of records) found.set(record.requestId, record);
      };
      if (!asksOfEnd(filter)) add((await readRows(engine, selectOpen(filter, cursor))).map(readRecord));
      let searchedTo: string | null = null;
      for (let ended = 0; ended <= limit && searchedTo === null;) {
        const most = isSearch(filter) ? limit + 1 : recordsAtOnce;
        const wanted = Math.min(limit + 1 - ended, most);
        const some = await findEnded(engine, filter, wanted, cursor, limits);
        add(some.records);
        ended += some.records.length;
        ({ searchedTo } = some);
        const last = some.records.at(-1);
        if (some.records.length < wanted || last === undefined) break;
        cursor = requestKeyOf(last.requestId);
      }
      const isSearched = (record: ConsumptionRecord): boolean =>
        searchedTo === null || record.requestId >= searchedTo;
      const records = [...found.values()].filter(isSearched).toSorted(newestFirst);
      if (records.length <= limit) return { records, next: searchedTo };
      return { records: records.slice(0, limit), next: records[limit - 1]?.requestId ?? null };
    },
    async findRecord(requestId, keyId) {
      const key = findRequestKey(requestId);
      if (key === null) return null;
      const [row] = (await engine.read(selectRecord(key, keyId ?? undefined))).flat();
      return row === undefined ? null : readRecord(row);
    },
  };
}

/** The time before which records were removed. */
export const selectRemovedBefore = sql`SELECT removed_before FROM record_removals WHERE id = 1`;

/** Where records are: the open ones apart, as they are few and change, and the others are many and stay. */
const tables = ['records', 'open_requests'] as const;

/** The columns of a record, of which an open one has no more than its beginning. */
const columnsIn = {
  records: '*',
  open_requests: `*, NULL AS outcome, NULL AS status, NULL AS input_tokens, NULL AS output_tokens, NULL AS usage_source,
    NULL AS attempts, NULL AS attempt_ms, 0 AS charge, 0 AS unbooked, NULL AS first_byte_ms, NULL AS total_ms,
    NULL AS settled_at`,
} as const;

/** One record, of one key or of any, in both tables. */
function selectRecord(key: RequestKey, keyId: string | undefined): readonly Statement[] {
  const ofKey = keyId === undefined ? raw('') : sql` AND key_id = ${keyId}`;
  return tables.map(
    (table) => sql`SELECT ${raw(columnsIn[table])} FROM ${raw(table)} WHERE ${isRequest(key)}${ofKey}`,
  );
}

/** All open records that belong on a page or behind it. */
function selectOpen(filter: RecordFilter, before: RequestKey | null): Statement {
  return sql`SELECT ${raw(columnsIn.open_requests)} FROM (SELECT * FROM open_requests${wantedOf(filter, before)}) AS open${where(beginningConditions(filter))}`;
}

/** Ids are in the order of time. */
function newestFirst(one: ConsumptionRecord, other: ConsumptionRecord): number {
  return one.requestId < other.requestId ? 1 : -1;
}
