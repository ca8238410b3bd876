import type { AuditEntry, AuditLine } from '../../domain/audit/audit-line.ts';
import type { AuditFilter, AuditTrail } from '../../domain/ports/audit.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { anyway, raw, readRows, sql, where, withWanted } from '../statements.ts';

/** Keeps the lines of the audit over any engine. */
export function createAuditTrail(engine: Pick<Engine, 'run' | 'read'>, nowMs: () => number): AuditTrail {
  return {
    async add(entries) {
      await engine.run([addLines(entries, nowMs())]);
    },
    async list(filter, limit, before) {
      const rows = await readRows(engine, selectLines(filter, limit + 1, before));
      const lines = rows.slice(0, limit).map(readLine);
      return { lines, next: rows.length > limit ? (lines.at(-1)?.number ?? null) : null };
    },
    async noteConfig(actor, compare) {
      for (let repeats = 0; repeats < maxRepeats; repeats++) {
        const [row] = await readRows(engine, selectConfig);
        const before = row === undefined ? null : String(row['settings']);
        const { after, changes } = compare(before);
        if (after === before) return;
        const isSame = sql`(SELECT settings FROM audited_config WHERE id = 1) IS NOT DISTINCT FROM ${before}`;
        const entry: AuditEntry = { ...configEntry, actor, changes };
        // Lines first: what they are added by is no longer so then.
        const stored = await engine.run([
          addLines(changes.length === 0 ? [] : [entry], nowMs(), isSame),
          sql`INSERT INTO audited_config (id, settings) SELECT 1, CAST(${after} AS TEXT) WHERE ${isSame}
            ON CONFLICT (id) DO UPDATE SET settings = excluded.settings`,
          selectConfig,
        ]);
        // Another process may have loaded another config meanwhile.
        if (stored.at(-1)?.[0]?.['settings'] === after) return;
      }
      throw new StorageError('other configs were noted at the same time', 'locked');
    },
  };
}

/** How often a config is compared again that another process has noted one before. */
const maxRepeats = 10;

const selectConfig: Statement = sql`SELECT settings FROM audited_config WHERE id = 1`;

const configEntry = { action: 'config.load', keyId: null, subject: null, result: 'done', times: 1 } as const;

/** The columns of what a line says, in their order, with their types. */
const columns = {
  way: 'TEXT',
  actor: 'TEXT',
  address: 'TEXT',
  action: 'TEXT',
  key_id: 'TEXT',
  subject: 'TEXT',
  result: 'TEXT',
  times: 'BIGINT',
  changes: 'TEXT',
};

/** The columns of a line. */
const lineColumns = ['number', 'created_at', ...Object.keys(columns)].join(', ');

/**
 * Adds lines behind the last one, where a condition holds: part of the unit that makes what they say, so that neither is
 * there without the other. Units run one after the other, also those of several nodes, so no two lines get one number. A key
 * is named as it is at this place of the unit; a declared one is found by its name.
 */
export function addLines(
  entries: readonly AuditEntry[],
  nowMs: number,
  condition: Statement = anyway,
): Statement {
  const wanted = withWanted(
    { place: 'BIGINT', ...columns },
    entries.map(({ actor, action, keyId, subject, result, times, changes }, at) => [
      at + 1,
      actor.way,
      actor.name,
      actor.address,
      action,
      keyId,
      subject,
      result,
      times,
      JSON.stringify(changes),
    ]),
    condition,
  );
  return sql`${wanted}
    INSERT INTO audit_lines (${raw(lineColumns)})
    SELECT coalesce((SELECT last FROM audit_chain WHERE id = 1), 0) + place, CAST(${nowMs} AS BIGINT), way, actor, address, action,
      coalesce(key_id, (SELECT id FROM api_keys WHERE way = 'declared_keys' AND declared = 1 AND name = subject)),
      coalesce(subject, (SELECT name FROM api_keys WHERE id = key_id)), result, times, changes
    FROM wanted`;
}

/**
 * Lines that fit a filter, newest first. Their numbers are found first: SQLite would sort whole lines of all that time, which
 * takes eight times as long.
 */
function selectLines(
  { fromMs, toMs, actor, action, keyId, search }: AuditFilter,
  limit: number,
  before: number | null,
): Statement {
  const wanted: Statement[] = [];
  if (before !== null) wanted.push(sql`number < ${before}`);
  if (fromMs !== undefined) wanted.push(sql`created_at >= ${fromMs}`);
  if (toMs !== undefined) wanted.push(sql`created_at < ${toMs}`);
  if (actor !== undefined) wanted.push(sql`actor = ${actor}`);
  if (action !== undefined) wanted.push(sql`action = ${action}`);
  if (keyId !== undefined) wanted.push(sql`key_id = ${keyId}`);
  if (search !== undefined) wanted.push(hasText(search));
  return sql`SELECT ${raw(lineColumns)} FROM audit_lines WHERE number IN
    (SELECT number FROM audit_lines${where(wanted)} ORDER BY number DESC LIMIT ${limit}) ORDER BY number DESC`;
}

/** Whether a line has a text in what it says. Upper and lower case are one in ASCII alone, as the databases have them here. */
function hasText(text: string): Statement {
  const lower = text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
  // No LIKE: it takes twice as long, and PostgreSQL expects so few hits that it reads all lines of the time before the first one.
  return sql`instr(said, ${lower}) > 0`;
}

/** The next lines behind one, oldest first. */
export function selectLinesBehind(number: number, limit: number): Statement {
  return sql`SELECT ${raw(lineColumns)} FROM audit_lines WHERE number > ${number} ORDER BY number LIMIT ${limit}`;
}

export function readLine(row: Row): AuditLine {
  const text = (column: string): string | null => (row[column] === null ? null : String(row[column]));
  return {
    number: Number(row['number']),
    createdAtMs: Number(row['created_at']),
    actor: {
      way: String(row['way']) as AuditLine['actor']['way'],
      name: text('actor'),
      address: text('address'),
    },
    action: String(row['action']) as AuditLine['action'],
    keyId: text('key_id'),
    subject: text('subject'),
    result: String(row['result']) as AuditLine['result'],
    times: Number(row['times']),
    changes: JSON.parse(String(row['changes'])) as AuditLine['changes'],
  };
}
