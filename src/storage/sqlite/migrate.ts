import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { migrations } from './migrations.ts';
import type { Migration } from './migrations.ts';

/** Brings the schema up to date. A database with other migrations than this version has is refused. */
export function migrate(database: DatabaseSync): void {
  database.exec(
    'CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)',
  );
  const done = new Map(
    database
      .prepare('SELECT number, checksum FROM migrations')
      .all()
      .map((row) => [Number(row['number']), String(row['checksum'])]),
  );
  if (Math.max(0, ...done.keys()) > migrations.length)
    throw new Error(
      'the database was made by a newer version of textgate: start that version, or use another file',
    );
  for (const migration of migrations) {
    const checksum = createHash('sha256').update(JSON.stringify(migration)).digest('hex');
    const applied = done.get(migration.number);
    if (applied === undefined) apply(database, migration, checksum);
    else if (applied !== checksum)
      throw new Error(`step ${migration.number} of the database's schema differs from this version's`);
  }
}

function apply(database: DatabaseSync, { number, name, statements }: Migration, checksum: string): void {
  database.exec('BEGIN IMMEDIATE');
  for (const statement of statements) database.exec(statement);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  database.exec('COMMIT');
}
