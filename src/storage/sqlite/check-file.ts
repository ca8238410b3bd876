import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Statement } from '../engine.ts';
import { raw, sql } from '../statements.ts';
import { reasonOf } from './failure-reason.ts';
import type { ThreadOptions } from './thread-messages.ts';

/**
 * The largest file that a start checks as a whole, in bytes: it takes about a second. A larger one is checked with each of
 * its backups.
 */
const maxCheckedBytes = 268_435_456;

/** The tables that the first step of the schema makes, behind that of the steps. */
const firstTables = ['api_keys', 'accounts'];

/** How many tables of another program a message names. */
const namedTables = 3;

/** A fault in the structure of a database. */
class DamageError extends Error {
  /** SQLITE_CORRUPT. */
  readonly errcode = 11;
}

/** The first fault in the structure of a database file; `null` when it is sound. Changes nothing. */
export function whyDamaged(path: string): string | null {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      checkStructure(database);
      // An empty file is a sound database without tables.
      database.prepare('SELECT count(*) FROM migrations').get();
      return null;
    } finally {
      database.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Throws with the first fault in the structure of an open database. */
function checkStructure(database: DatabaseSync): void {
  const [row] = database.prepare('PRAGMA quick_check(1)').all();
  const found = String(row?.['quick_check']);
  if (found !== 'ok') throw new DamageError(found);
}

/**
 * Throws for a database that no gateway may use, before anything in it is changed: one of another program, whose tables
 * would stand between ours; a damaged one, which would be damaged further; and one that was copied to PostgreSQL, as both
 * would allow a key its whole balance.
 */
export function checkBeforeUse(
  database: DatabaseSync,
  { path, name, allowMigrated = false }: Pick<ThreadOptions, 'path' | 'name' | 'allowMigrated'>,
): void {
  const rows = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  const tables = rows.map((row) => String(row['name']));
  const others = tables.filter((table) => table !== 'migrations' && !table.startsWith('sqlite_'));
  if (
    others.length > 0 &&
    !(tables.includes('migrations') && firstTables.every((table) => others.includes(table)))
  )
    throw new Error(
      `it is a database of another program, with the tables ${others.slice(0, namedTables).join(', ')}${others.length > namedTables ? ', …' : ''}. Set storage.url to another file`,
    );
  if (tables.includes(moveMark) && !allowMigrated) refuseMoved(database, name);
  if (path !== ':memory:' && statSync(path).size <= maxCheckedBytes) checkStructure(database);
}

/** Refuses a database that carries the mark of a move. */
function refuseMoved(database: DatabaseSync, name: string): void {
  const moved = describeMove(database, name);
  if (moved !== null)
    throw new Error(
      `${moved} If no gateway uses the copy, storage.allowMigrated: true starts one on this file all the same`,
    );
}

/** Where a database was copied to, and why it is not used since; `null` for one without the mark of a move. */
function describeMove(database: DatabaseSync, name: string): string | null {
  const [move] = database.prepare(`SELECT target, moved_at FROM ${moveMark}`).all();
  if (move === undefined) return null;
  const day = new Date(Number(move['moved_at'])).toISOString().slice(0, 10);
  return `it was copied to ${String(move['target'])} on ${day}. Set storage.url to that database, and keep ${name} as a backup: with a gateway on each there would be two ledgers, and each of them would allow a key its whole balance.`;
}

/** Where the database in a file was copied to; `null` when it was not, or can't be read. Changes nothing. */
export function whyMoved(path: string): string | null {
  const url = pathToFileURL(path);
  // Without a log SQLite would make one to read by.
  url.search = existsSync(`${path}-wal`) ? '?mode=ro' : '?immutable=1';
  try {
    const database = new DatabaseSync(url, { readOnly: true });
    try {
      return describeMove(database, path);
    } finally {
      database.close();
    }
  } catch {
    return null;
  }
}

/** Why a database can't be opened, and what to do, from what SQLite says; `name` is its path as configured. */
export function explainOpenFailure(error: unknown, name: string): string {
  const { errcode, message } = error as { readonly errcode?: number; readonly message: string };
  const said = reasonOf(errcode);
  const reason = said === 'io' || said === 'unavailable' ? (reasonOfFolder(name) ?? said) : said;
  if (reason === 'damaged')
    return `it is damaged: ${message}. Restore a backup, which keeps the damaged file beside it:\n  textgate restore BACKUP --to ${name}`;
  if (reason === 'read_only')
    return 'it is read-only: make the file and its folder writable for the user of this process';
  return reason === 'full' ? 'its disk is full: free some space, and start again' : message;
}

/** What keeps files from being made beside a database: SQLite only says that one of them could not be made or written. */
function reasonOfFolder(path: string): 'read_only' | 'full' | null {
  const folder = dirname(path);
  try {
    accessSync(folder, constants.W_OK);
    return statfsSync(folder).bavail === 0 ? 'full' : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EROFS' || code === 'EACCES' ? 'read_only' : null;
  }
}

/** The table that a SQLite database has once it was copied to another one; earlier versions pass over it. */
const moveMark = 'moved_to';

/** Marks a database as copied to `target`, a URL without its password, at a time in milliseconds since 1970. */
export function markMoved(target: string, nowMs: number): readonly Statement[] {
  return [
    sql`CREATE TABLE IF NOT EXISTS ${raw(moveMark)} (target TEXT NOT NULL, moved_at BIGINT NOT NULL)`,
    sql`DELETE FROM ${raw(moveMark)}`,
    sql`INSERT INTO ${raw(moveMark)} VALUES (${target}, ${nowMs})`,
  ];
}
