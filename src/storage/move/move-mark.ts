import type { Statement } from '../engine.ts';

/** The table that a SQLite database has once it was copied to another one; earlier versions pass over it. */
export const moveMark = 'moved_to';

/** Marks a database as copied to `target`, a URL without its password, at a time in milliseconds since 1970. */
export function markMoved(target: string, nowMs: number): readonly Statement[] {
  return [
    {
      sql: `CREATE TABLE IF NOT EXISTS ${moveMark} (target TEXT NOT NULL, moved_at BIGINT NOT NULL)`,
      values: [],
    },
    { sql: `DELETE FROM ${moveMark}`, values: [] },
    { sql: `INSERT INTO ${moveMark} VALUES (?, ?)`, values: [target, nowMs] },
  ];
}
