import { id, sql } from './parts.ts';

/** The history of the processes: a further step of both engines. */
export const historyIntervals = sql`
-- What each process counted in each interval of 10 s of the last hour, and in each minute of the last day.
CREATE TABLE history_intervals (
  length_ms INTEGER NOT NULL, at BIGINT NOT NULL,
  process ${id} NOT NULL, -- one run of a process; another one after its clock was set back
  grouping ${id} NOT NULL, -- what its requests are told apart by; empty for nothing
  contents TEXT NOT NULL, -- base64 of compressed JSON
  PRIMARY KEY (length_ms, at, process, grouping)
);
`;
