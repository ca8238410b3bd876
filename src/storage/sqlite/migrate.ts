import type { DatabaseSync } from 'node:sqlite';
import { createMigrationTable, findPending } from '../migration.ts';
import type { MadeMigration, PendingMigration } from '../migration.ts';
import { migrations } from './migrations.ts';

/** Brings the schema up to date. A database with other migrations than this version has is refused. */
export function migrate(database: DatabaseSync): void {
  database.exec(createMigrationTable());
  for (const step of findPending(migrations, madeSteps(database))) apply(database, step);
}

/** The steps that a database has: a file is used by one version at a time, so each needs a version that knows it. */
export function madeSteps(database: DatabaseSync): ReadonlyMap<number, MadeMigration> {
  const rows = database.prepare('SELECT number, checksum FROM migrations').all();
  return new Map(
    rows.map((row) => {
      const number = Number(row['number']);
      return [number, { checksum: String(row['checksum']), runsWith: number }];
    }),
  );
}

function apply(database: DatabaseSync, { number, name, statements, checksum }: PendingMigration): void {
  database.exec('BEGIN IMMEDIATE');
  for (const statement of statements) database.exec(statement);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  database.exec('COMMIT');
}
