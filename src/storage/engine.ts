import type { DatabaseCopy } from '../operations/maintenance.ts';

/** A value that a statement takes or a row holds. Times and counts are integers, keys and names text. */
export type SqlValue = string | number | null;

/** One statement with `?` placeholders. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export type Row = Readonly<Record<string, SqlValue>>;

/** The rows of each statement, in the order of the statements. */
export type Results = readonly (readonly Row[])[];

export type FixedUnitName =
  | 'open_record'
  | 'settle_record'
  | 'open_budgeted'
  | 'settle_budgeted'
  | 'open_grouped'
  | 'settle_grouped'
  | 'open_both'
  | 'settle_both'
  | 'settle_claimed'
  | 'settle_claimed_budgeted'
  | 'settle_claimed_grouped'
  | 'settle_claimed_both'
  | 'begin_claim'
  | 'free_claim'
  | 'renew_lease'
  | 'end_lease'
  | 'check_writes'
  | 'add_tokens'
  | 'number_kind';

/**
 * A unit that is run for every request, or that must not wait for the units of statements of other processes: the same
 * statements each time, with one list of values. Every part of an engine has its text, so only the values travel; an engine
 * may keep it as prepared statements, or as one function of the database. One statement decides, and returns a row, whose
 * values the others take: so none has to read again what an earlier one wrote. Statements name the values of the unit
 * (`:request_id`), and the columns of that row (`@charge`); `toPlain` writes both as `?`. `fixed-units.ts` has all units.
 */
export interface FixedUnit<Name extends FixedUnitName = FixedUnitName> {
  readonly name: Name;
  /** The types of its values by their names, in the order in which they are passed. */
  readonly takes: Readonly<Record<string, FixedType>>;
  /**
   * The name of the value by which calls are spread over connections, where there are several. `null` for what a process
   * does for itself, on a connection of its own: a call of a request may wait for a lock, and what is behind it waits, too.
   */
  readonly spreadBy: string | null;
  /** Whether a power failure may undo it after its commit, which then need not wait for the disk: a later unit repeats it. */
  readonly mayBeForgotten: boolean;
  /**
   * Rows that it locks first, in an order that has no deadlocks, where units run side by side: those of the first of these
   * that finds any.
   */
  readonly locks: readonly RowLock[];
  /**
   * Statements that are run behind the locks, before it is decided: what they change is true whatever the decision is, and
   * stays, unless the unit fails.
   */
  readonly preparations: readonly string[];
  /**
   * The statements that decide. They are tried in their order, until one returns a row: no more than one. Where none does,
   * the unit is over, and has no result; it must have changed nothing then.
   */
  readonly decisions: readonly string[];
  /** The columns of the row that decides, in their order, with their types. */
  readonly decided: Readonly<Record<string, FixedType>>;
  /** Statements that change rows once it is decided, in order. */
  readonly changes: readonly string[];
  /** The columns of the row that decides which the unit results in, all of them integers. */
  readonly columns: readonly string[];
  /** Undoes what deciding has changed, where the changes are not made after all; absent where it changes nothing. */
  readonly undo?: string;
}

type FixedType = 'text' | 'bigint';

/** The values that a fixed unit takes, in their order: the name and the type of each, and how it is read. */
export type Taken<From> = readonly (readonly [
  name: string,
  type: FixedType,
  read: (from: From) => SqlValue | undefined,
])[];

/** The types of values by their names. */
export function typesOf(taken: Taken<never>): FixedUnit['takes'] {
  return Object.fromEntries(taken);
}

/** Reads values in the order in which they are passed. Throws for one that is missing. */
export function takeValues<From>(taken: Taken<From>, from: From): SqlValue[] {
  return taken.map(([name, , read]) => {
    const value = read(from);
    if (value === undefined) throw new Error(`the value ${name} is missing`);
    return value;
  });
}

/** Some rows of a table. */
interface RowLock {
  readonly table: string;
  readonly where: string;
}

/** A statement of a fixed unit with plain `?` placeholders. */
export interface PlainStatement {
  readonly sql: string;
  /** For each placeholder, in their order, the index of its value: the decided values follow those of the unit. */
  readonly indexes: readonly number[];
}

/** Writes a statement of a fixed unit with plain placeholders. */
export function toPlain(
  sql: string,
  { takes, decided }: Pick<FixedUnit, 'takes' | 'decided'>,
): PlainStatement {
  const [taken, columns] = [Object.keys(takes), Object.keys(decided)];
  const indexes: number[] = [];
  const plain = replacePlaceholders(sql, {
    value: (name) => (indexes.push(indexIn(taken, name)), '?'),
    decided: (name) => (indexes.push(taken.length + indexIn(columns, name)), '?'),
  });
  return { sql: plain, indexes };
}

function indexIn(names: readonly string[], name: string): number {
  const index = names.indexOf(name);
  if (index < 0) throw new Error(`nothing gives ${name}`);
  return index;
}

/** Writes the placeholders of a statement of a fixed unit in another way. */
export function replacePlaceholders(
  sql: string,
  write: { readonly value: (name: string) => string; readonly decided: (name: string) => string },
): string {
  return sql.replace(/([:@])([a-z]\w*)/g, (_, mark: string, name: string) =>
    mark === ':' ? write.value(name) : write.decided(name),
  );
}

/** The values of a plain statement, out of those of its unit and of the row that decided it. */
export function pickValues<Value>({ indexes }: PlainStatement, values: readonly Value[]): Value[] {
  // A value that is missing is left undefined, which no database takes: the unit fails rather than writes a null.
  return indexes.map((index) => values[index] as Value);
}

/**
 * The values that a fixed unit results in, in the order of its columns; `null` where nothing was decided. PostgreSQL says behind
 * those of a settlement whether it freed its slot (`src/storage/postgres/unit-functions.ts`).
 */
export type ResultRow = readonly SqlValue[] | null;

/**
 * A database that runs units of statements, each unit whole or not at all. Every call rejects with a `StorageError`
 * when the database fails. An engine that is the only user of its database ends the leases of all earlier owners when it
 * opens it. `test/conformance/engine.ts` has what every implementation must do.
 */
export interface Engine {
  /** Resolves with the rows of every statement once the unit is committed. */
  run(unit: readonly Statement[]): Promise<Results>;
  /** Runs a fixed unit, in line with those of `run`; resolves with its row once it is committed. */
  call(unit: FixedUnit, values: readonly SqlValue[]): Promise<ResultRow>;
  /**
   * Resolves with the rows of every statement, all of them read from one snapshot that holds everything committed
   * before the call. Never delays a `run`.
   */
  read(statements: readonly Statement[]): Promise<Results>;
  /**
   * The same for reads of a few rows by an index, on which requests and nodes depend. Where a database is reached over a
   * network, no `read` delays it, and it rejects within seconds when the connection is gone.
   */
  lookUp(statements: readonly Statement[]): Promise<Results>;
  /** Copies the database as it is at one moment; `null` where there is no file to copy. Delays neither of the above. */
  copy(): Promise<DatabaseCopy | null>;
  /** Why the database can't be used any more; `null` while it can, or is still being opened. */
  readonly broken: Error | null;
  /** Why requests should not be sent here although the database is open; `null` while nothing is wrong. */
  readonly impaired: string | null;
  /** The size of the write-ahead log at the last look, in bytes; `null` where there is no such file. */
  readonly logBytes: number | null;
  /** Resolves when the database is open and up to date; rejects with the reason when it can't be opened. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when a database that was open can't be kept in use: the process has to end. */
  readonly lost: Promise<Error>;
  /** Finishes what was handed in, then closes. Rejects when rows could not be saved that are on no disk. */
  close(): Promise<void>;
}
