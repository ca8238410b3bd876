import type { DatabaseSync } from 'node:sqlite';
import { createMigrationTable, findPending } from '../migration.ts';
import type { MadeMigration, Migration, PendingMigration } from '../migration.ts';
import { migrations } from './schema.ts';

/** Brings the schema up to date. A database with other steps than this version has is refused, and stays as it is. */
export function migrate(database: DatabaseSync, steps: readonly Migration[] = migrations): void {
  for (const step of findPending(steps, madeSteps(database))) apply(database, step);
}

/** The steps that a database has: a file is used by one version at a time, so each needs a version that knows it. */
export function madeSteps(database: DatabaseSync): ReadonlyMap<number, MadeMigration> {
  const [table] = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'migrations'`).all();
  if (table === undefined) return new Map();
  const rows = database.prepare('SELECT number, checksum FROM migrations').all();
  return new Map(
    rows.map((row) => {
      const number = Number(row['number']);
      return [number, { checksum: String(row['checksum']), runsWith: number }];
    }),
  );
}

function apply(database: DatabaseSync, { number, name, sql, checksum }: PendingMigration): void {
  database.exec(`BEGIN IMMEDIATE; ${createMigrationTable()}; ${sql}`);
  database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
  database.exec('COMMIT');
}
