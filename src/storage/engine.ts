/** A value that a statement takes or a row holds. Times and counts are integers, keys and names text. */
type SqlValue = string | number | null;

/** One statement with `?` placeholders. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export type Row = Readonly<Record<string, SqlValue>>;

/** A database that runs units of statements, each unit whole or not at all. */
export interface Engine {
  /** Resolves with the rows of every statement once the unit is committed. */
  run(unit: readonly Statement[]): Promise<readonly (readonly Row[])[]>;
  /** Why the database can't be used any more; `null` while it can, or is still being opened. */
  readonly broken: Error | null;
  /** Resolves when the database is open and up to date; rejects with the reason when it can't be opened. */
  readonly ready: Promise<void>;
  /** Finishes what was handed in, then closes. */
  close(): Promise<void>;
}
