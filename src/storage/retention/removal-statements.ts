import type { ReadRecord, RecordPlace } from '../../domain/ports/retention.ts';
import { placesOf } from '../engine.ts';
import type { Statement } from '../engine.ts';

/** Ended records from before a time, oldest first. */
export function selectOldest(beforeMs: number, after: RecordPlace | null, limit: number): Statement {
  const start = after ?? { createdAtMs: Number.MIN_SAFE_INTEGER, requestId: '' };
  return {
    sql: `SELECT * FROM records WHERE (created_at, request_id) > (?, ?) AND created_at < ?
          ORDER BY created_at, request_id LIMIT ?`,
    values: [start.createdAtMs, start.requestId, beforeMs, limit],
  };
}

export const selectOldestTime: Statement = {
  sql: 'SELECT created_at FROM records ORDER BY created_at, request_id LIMIT ?',
  values: [1],
};

export const selectRemovedBefore: Statement = {
  sql: 'SELECT removed_before FROM record_removals WHERE id = 1',
  values: [],
};

/** Removes some records, in one unit that says from when they are. The rows of the deletions are those that are gone. */
export function removeRecords(records: readonly ReadRecord[], beforeMs: number): readonly Statement[] {
  const deletions = [
    { some: records.filter(({ isLost }) => !isLost), condition: `outcome <> 'lost'` },
    { some: records.filter(({ isLost }) => isLost), condition: `outcome = 'lost'` },
  ];
  return [
    {
      sql: `INSERT INTO record_removals (id, removed_before) VALUES (1, CAST(? AS BIGINT))
            ON CONFLICT (id) DO UPDATE SET removed_before = excluded.removed_before
              WHERE record_removals.removed_before < excluded.removed_before`,
      values: [beforeMs],
    },
    ...deletions
      .filter(({ some }) => some.length > 0)
      .map(({ some, condition }) => ({
        sql: `DELETE FROM records WHERE request_id IN (${placesOf(some)}) AND created_at < ? AND ${condition}
              RETURNING request_id`,
        values: [...some.map(({ requestId }) => requestId), beforeMs],
      })),
  ];
}
