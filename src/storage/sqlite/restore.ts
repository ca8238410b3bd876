import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  promises,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor } from '../../domain/audit/audit-line.ts';
import { realPlace } from '../../shared/real-place.ts';
import { databaseOf, filesOf, removeDatabase, removeLog, stampOf, syncToDisk } from '../database-files.ts';
import { addLines } from '../audit/audit-lines.ts';
import { findPending } from '../migration.ts';
import { checkBeforeUse, whyDamaged, whyMoved } from './check-file.ts';
import { lockOwnership } from './owner-lock.ts';
import { madeSteps, migrations } from './schema.ts';

/** What was restored. */
interface Restored {
  readonly keys: number;
  readonly records: number;
  /** Where the file is that was there before; `null` if there was none. */
  readonly kept: string | null;
}

/**
 * Puts a copy of a backup, which is a file or `-` for what is read from the standard input, in the place of a database, under
 * the lock of a gateway, which must not run. The copy is checked first; the file that was there stays beside it, with its log.
 * `allowMigrated`: also where one of them was copied to PostgreSQL. Rejects, and changes nothing, with why it can't be done.
 */
export async function restoreDatabase(
  backup: string,
  database: string,
  { allowMigrated, by }: { readonly allowMigrated: boolean; readonly by: Actor },
): Promise<Restored> {
  const owner = backup === '-' ? null : databaseOf(backup);
  if (owner !== null)
    throw new Error(
      `${backup} belongs to the database ${owner} of a gateway, and is no backup: make one with textgate backup`,
    );
  const path = placeOf(database);
  const lock = lockOwnership(path);
  const copy = `${path}.restored-${process.pid}`;
  const model = existsSync(path) ? path : dirname(path);
  try {
    giveTo(filesOf(path).lock, model);
    const moved = allowMigrated ? null : whyMoved(path);
    if (moved !== null)
      throw new Error(
        `${database} is not replaced: ${moved} If no gateway uses the copy, --allow-migrated restores all the same`,
      );
    if (backup === '-') await promises.writeFile(copy, process.stdin, { mode: 0o600 });
    else copyWithLog(backup, copy);
    chmodSync(copy, 0o600);
    const counts = check(copy, backup === '-' ? 'the standard input' : backup, allowMigrated);
    noteRestore(copy, by);
    giveTo(copy, model);
    syncToDisk(copy);
    const kept = existsSync(path) ? keep(path) : null;
    removeLog(path);
    renameSync(copy, path);
    syncToDisk(dirname(path));
    return { ...counts, kept };
  } finally {
    removeDatabase(copy);
    lock.close();
  }
}

/** The real path of a database, which need not be there: a link stays one, and the lock is where a gateway looks for it. */
function placeOf(database: string): string {
  try {
    return realPlace(database);
  } catch {
    // Its folder is not there: it is made with the lock.
    return database;
  }
}

function copyWithLog(backup: string, copy: string): void {
  copyFileSync(backup, copy);
  const log = `${backup}-wal`;
  if (existsSync(log)) copyFileSync(log, `${copy}-wal`);
}

/** Throws for a file that a gateway of this version would not start on; returns how much is in it. */
function check(copy: string, name: string, allowMigrated: boolean): Pick<Restored, 'keys' | 'records'> {
  const damage = whyDamaged(copy);
  if (damage !== null) throw new Error(`${name} can't be restored: ${damage}`);
  const database = new DatabaseSync(copy);
  try {
    // What is in its log alone, as in that of a file that was kept, would be lost with the log.
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    checkBeforeUse(database, { path: copy, name, allowMigrated });
    findPending(migrations, madeSteps(database));
    const count = (table: string): number =>
      Number(database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count']);
    return { keys: count('api_keys'), records: count('record_rows') };
  } catch (error) {
    throw new Error(`${name} can't be restored: ${(error as Error).message}`, { cause: error });
  } finally {
    database.close();
  }
}

/** Adds a line to the audit of a copy, unless it is of a version without one. */
function noteRestore(copy: string, by: Actor): void {
  const database = new DatabaseSync(copy);
  try {
    if (findPending(migrations, madeSteps(database)).length > 0) return;
    const { sql, values } = addLines([keyEntry(by, 'database.restore', null, [])], Date.now());
    database.prepare(sql).all(...values);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    database.close();
  }
}

/**
 * Gives a database and its log a second name. The file keeps its first one until the copy takes it, so that a command that is
 * killed leaves no moment without a database, in which a start would make an empty one.
 */
function keep(path: string): string {
  const kept = `${path}.before-restore-${stampOf(new Date())}`;
  for (const end of ['-wal', '']) if (existsSync(path + end)) nameAlso(path + end, kept + end);
  return kept;
}

function nameAlso(file: string, name: string): void {
  try {
    linkSync(file, name);
  } catch {
    // A file system without hard links.
    copyFileSync(file, name);
  }
}

/** Gives a file to the user and group of another one: the command may run as root, and the gateway as another user. */
function giveTo(file: string, model: string): void {
  const { uid, gid } = statSync(model);
  const own = statSync(file);
  if (process.platform !== 'win32' && (own.uid !== uid || own.gid !== gid)) chownSync(file, uid, gid);
}
