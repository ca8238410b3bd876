import { DatabaseSync } from 'node:sqlite';

/** A row of the consumption record, as stored in the database. */
export interface RecordRow {
  readonly request_id: string;
  readonly protocol: string;
  readonly mode: string;
  readonly model: string;
  readonly upstream: string;
  readonly outcome: string | null;
  readonly status: number | null;
  readonly usage_source: string | null;
  readonly hold: number;
  readonly charge: number;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  /** 1 where it was settled after it was closed as lost, 2 where its beginning was forgotten, and 0 otherwise. */
  readonly late: number;
}

/** Reads the records in a database file: those closed as lost, then what has ended, in that order, then what is open. */
export function readRecords(file: string): readonly RecordRow[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const ended = database.prepare('SELECT * FROM records ORDER BY settled_at, created_at, tail').all();
  const open = database
    .prepare(
      'SELECT *, NULL AS outcome, NULL AS status, 0 AS charge, 0 AS late FROM open_requests ORDER BY request_id',
    )
    .all();
  database.close();
  return [...ended, ...open] as unknown as readonly RecordRow[];
}
