import type { DatabaseSync } from 'node:sqlite';
import { createMigrationTable, findPending } from '../migration.ts';
import type { PendingMigration } from '../migration.ts';
import { migrations } from './migrations.ts';

/** Brings the schema up to date. A database with other migrations than this version has is refused. */
export function migrate(database: DatabaseSync): void {
  database.exec(createMigrationTable);
  const done = new Map(
    database
      .prepare('SELECT number, checksum FROM migrations')
      .all()
      .map((row) => [Number(row['number']), String(row['checksum'])]),
  );
  for (const step of findPending(migrations, done)) apply(database, step);
}

function apply(database: DatabaseSync, { number, name, statements, checksum }: PendingMigration): void {
  database.exec('BEGIN IMMEDIATE');
  for (const statement of statements) database.exec(statement);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  database.exec('COMMIT');
}
