import { createHash } from 'node:crypto';

/** One step of the schema. A released step is never changed: a change is a new step. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly statements: readonly string[];
  /**
   * The lowest number of steps with which a version may still use a database that has this one, where versions run side by
   * side: a step that only adds leaves it at an earlier one. Without it, at this one.
   */
  readonly runsWith?: number;
}

/** A step that was made. */
export interface MadeMigration {
  readonly checksum: string;
  readonly runsWith: number;
}

/** A step that is to be made, with the checksum that is written down once it is. */
export interface PendingMigration extends Migration {
  readonly checksum: string;
}

/** Creates the table in which the steps are written down that were made, with further columns of an engine. */
export function createMigrationTable(columns = ''): string {
  return `CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL${columns})`;
}

/** The lowest number of steps that a version must have for a database with a step. */
export function runsWithOf({ number, runsWith = number }: Migration): number {
  return runsWith;
}

/**
 * The steps that a database lacks. `done` has those that it has, by their numbers. Throws for a database with other steps
 * than this version's, or with further ones that this version can't run with.
 */
export function findPending(
  steps: readonly Migration[],
  done: ReadonlyMap<number, MadeMigration>,
): readonly PendingMigration[] {
  const unknown = [...done].filter(([number]) => number > steps.length);
  if (unknown.some(([, { runsWith }]) => runsWith > steps.length))
    throw new Error(
      'the database was made by a newer version of textgate: start that version, or restore the backup from before its start',
    );
  const pending: PendingMigration[] = [];
  for (const step of steps) {
    const { number, name, statements } = step;
    const checksum = createHash('sha256').update(JSON.stringify({ number, name, statements })).digest('hex');
    const applied = done.get(step.number)?.checksum;
    if (applied === undefined) pending.push({ ...step, checksum });
    else if (applied !== checksum)
      throw new Error(`step ${step.number} of the database's schema differs from this version's`);
  }
  return pending;
}
