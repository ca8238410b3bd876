import { createHash } from 'node:crypto';

/** One step of the schema. A released step is never changed: a change is a new step. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** A step that is to be made, with the checksum that is written down once it is. */
export interface PendingMigration extends Migration {
  readonly checksum: string;
}

/** The table in which the steps are written down that were made. */
export const createMigrationTable =
  'CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)';

/**
 * The steps that a database lacks. `done` has the checksums of those that it has, by their numbers. Throws for a database
 * that has other steps than this version.
 */
export function findPending(
  steps: readonly Migration[],
  done: ReadonlyMap<number, string>,
): readonly PendingMigration[] {
  if (Math.max(0, ...done.keys()) > steps.length)
    throw new Error(
      'the database was made by a newer version of textgate: start that version, or use another database',
    );
  const pending: PendingMigration[] = [];
  for (const step of steps) {
    const checksum = createHash('sha256').update(JSON.stringify(step)).digest('hex');
    const applied = done.get(step.number);
    if (applied === undefined) pending.push({ ...step, checksum });
    else if (applied !== checksum)
      throw new Error(`step ${step.number} of the database's schema differs from this version's`);
  }
  return pending;
}
