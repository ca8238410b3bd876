import type { DatabaseCopy } from '../operations/maintenance.ts';

/** A value that a statement takes or a row holds. Times and counts are integers, keys and names text. */
type SqlValue = string | number | null;

/** One statement with `?` placeholders. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export type Row = Readonly<Record<string, SqlValue>>;

/** The rows of each statement, in the order of the statements. */
export type Results = readonly (readonly Row[])[];

/**
 * A database that runs units of statements, each unit whole or not at all. Every call rejects with a `StorageError`
 * when the database fails. An engine that is the only user of its database ends the leases of all earlier owners when it
 * opens it. `test/conformance/engine.ts` has what every implementation must do.
 */
export interface Engine {
  /** Resolves with the rows of every statement once the unit is committed. */
  run(unit: readonly Statement[]): Promise<Results>;
  /**
   * Resolves with the rows of every statement, all of them read from one snapshot that holds everything committed
   * before the call. Never delays a `run`.
   */
  read(statements: readonly Statement[]): Promise<Results>;
  /** Copies the database as it is at one moment; `null` where there is no file to copy. Delays neither of the above. */
  copy(): Promise<DatabaseCopy | null>;
  /** Why the database can't be used any more; `null` while it can, or is still being opened. */
  readonly broken: Error | null;
  /** Why requests should not be sent here although the database is open; `null` while nothing is wrong. */
  readonly impaired: string | null;
  /** Resolves when the database is open and up to date; rejects with the reason when it can't be opened. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when a database that was open can't be kept in use: the process has to end. */
  readonly lost: Promise<Error>;
  /** Finishes what was handed in, then closes. Rejects when rows could not be saved that are on no disk. */
  close(): Promise<void>;
}
