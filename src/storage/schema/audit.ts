import { either, id, sql } from './parts.ts';

/** All that a line says, in lower case. A line feed is in none of its parts: no text is found across two. */
const said = `lower(${['subject', 'actor', 'key_id', 'address', 'action', 'result', 'changes']
  .map((column) => `coalesce(${column}, '')`)
  .join(" || '\n' || ")})`;

/** The audit of what operators do: a further step of both engines, with triggers of each. */
export const auditLines = sql`
-- What was changed, by whom, and what was refused: each line behind the last one, without a gap.
CREATE TABLE audit_lines (
  number ${either('INTEGER', 'BIGINT')} PRIMARY KEY,
  created_at BIGINT NOT NULL,
  way ${id} NOT NULL, actor ${id}, address ${id}, -- by what way, who, and from where
  action ${id} NOT NULL,
  key_id ${id}, subject ${id}, -- what it is about
  result ${id} NOT NULL, -- done, or the code of the refusal
  times BIGINT NOT NULL, -- how many such acts it stands for
  changes ${id} NOT NULL, -- JSON: each field before and after
  said ${id} GENERATED ALWAYS AS (${said}) STORED -- what is searched: put together at every search, it would take three times as long
);
CREATE INDEX audit_lines_by_key ON audit_lines (key_id, number) WHERE key_id IS NOT NULL;
CREATE INDEX audit_lines_by_time ON audit_lines (created_at);
CREATE INDEX audit_lines_of_removals ON audit_lines (subject) WHERE action = 'audit.remove';
CREATE INDEX audit_lines_by_actor ON audit_lines (actor, number) WHERE actor IS NOT NULL;

-- The number of the last line, and of the last one that was removed for its age: one row, once there is a line.
CREATE TABLE audit_chain (
  id INTEGER PRIMARY KEY CHECK (id = 1), last BIGINT NOT NULL, removed BIGINT NOT NULL DEFAULT 0
);

-- The settings of the config that was loaded last: one row.
CREATE TABLE audited_config (id INTEGER PRIMARY KEY CHECK (id = 1), settings TEXT NOT NULL);
`;

/** Counts lines that are added, the last of which a query has: for a trigger. */
export const countAuditLines = (last: string): string => `INSERT INTO audit_chain (id, last) ${last}
  ON CONFLICT (id) DO UPDATE SET last = excluded.last;`;

/** That lines are to count as removed whose last one is not sealed, or of which no line says so: for a trigger. */
export const isUntoldRemoval = `NEW.removed > OLD.removed AND NOT (
  EXISTS (SELECT 1 FROM ledger_seals WHERE key_id = 'audit' AND number = NEW.removed) AND EXISTS (
    SELECT 1 FROM audit_lines WHERE action = 'audit.remove' AND subject = CAST(NEW.removed AS TEXT)))`;
