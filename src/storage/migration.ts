import { createHash } from 'node:crypto';

/**
 * One step of the schema. A released step is never changed: a change is a new step. Before the first release the first one is
 * changed instead, and databases of earlier checkouts are refused.
 */
export interface Migration {
  readonly number: number;
  readonly name: string;
  /** Its statements, one after the other. */
  readonly sql: string;
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

/** Why a database is refused whose first step is another one: there is no way from its tables to those of this version. */
const madeInDevelopment = `the database was made by a development version of textgate, from before the first release, whose tables are others than this version's. It is left as it is. Set storage.url to another database, in which this version begins anew. The version that made this one still starts on it, and prints what it has: textgate keys list, textgate records --csv, textgate statement get`;

/**
 * The steps that a database lacks. `done` has those that it has, by their numbers. Throws for a database with other steps
 * than this version's, or with further ones that this version can't run with.
 */
export function findPending(
  steps: readonly Migration[],
  done: ReadonlyMap<number, MadeMigration>,
): readonly PendingMigration[] {
  const pending: PendingMigration[] = [];
  for (const step of steps) {
    const { number, name, sql } = step;
    const checksum = createHash('sha256').update(JSON.stringify({ number, name, sql })).digest('hex');
    const made = done.get(number);
    if (made === undefined) pending.push({ ...step, checksum });
    else if (made.checksum !== checksum)
      throw new Error(
        number === 1
          ? madeInDevelopment
          : `step ${number} of the database's schema differs from this version's`,
      );
  }
  const further = [...done].filter(([number]) => number > steps.length);
  if (further.some(([, { runsWith }]) => runsWith > steps.length))
    throw new Error(
      'the database was made by a newer version of textgate: start that version, or restore the backup from before its start',
    );
  return pending;
}
