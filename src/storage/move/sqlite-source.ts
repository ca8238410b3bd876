import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { SQLOutputValue, StatementSync } from 'node:sqlite';
import { findPending } from '../migration.ts';
import { madeSteps, migrations } from '../sqlite/schema.ts';
import type { ColumnType, CopiedColumn, TablePlan, TableSums } from './table-plan.ts';

/** The rows of a page, and about how many characters of them: it ends with the row that exceeds them. */
const rowsPerPage = 1_000;
const charactersPerPage = 4_194_304;

/** Integers are summed in two parts, above and below this unit: the sum of many times would exceed 64 bits. */
const sumUnit = 1_000_000_000n;

/** Some rows of a table: for each of its columns, the values of the rows as texts. */
export interface Page {
  readonly rows: number;
  readonly columns: readonly (readonly (string | null)[])[];
}

/**
 * Throws when a path leads to no database of a gateway that this version can read. Opening it as a gateway does would
 * make a database of a missing or an empty file.
 */
export function checkSource(path: string): void {
  if (!statSync(path).isFile()) throw new Error(`${path} is no file`);
  try {
    checkSchema(path);
  } catch (error) {
    throw new Error(`${path} can't be moved: ${(error as Error).message}`, { cause: error });
  }
}

function checkSchema(path: string): void {
  const database = openForReading(path);
  try {
    const tables = tableNames(database);
    if (!['migrations', 'api_keys', 'accounts'].every((table) => tables.includes(table)))
      throw new Error('it is no database of textgate');
    findPending(migrations, madeSteps(database));
  } finally {
    database.close();
  }
}

function openForReading(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true });
}

function tableNames(database: DatabaseSync): readonly string[] {
  const found = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  return found.map((row) => String(row['name']));
}

/** A database file whose rows are read in pages, all of them from one snapshot. Another connection has its owner's lock. */
export class SqliteSource {
  readonly #database: DatabaseSync;

  constructor(path: string) {
    this.#database = openForReading(path);
    this.#database.exec('BEGIN');
  }

  tables(): readonly string[] {
    return tableNames(this.#database);
  }

  columnsOf(table: string): readonly string[] {
    return this.#describe(table).map(({ name }) => name);
  }

  count(table: string): number {
    return Number(this.#prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count']);
  }

  /** Reads a table to its end. Throws for a value that PostgreSQL can't store, and names its row. */
  *pages({ table, columns }: TablePlan): Generator<Page> {
    const keys = this.#describe(table)
      .filter(({ isKey }) => isKey)
      .map(({ name }) => name);
    const read = columns.map(({ name }) => name).join(', ');
    let page = columns.map((): (string | null)[] => []);
    let [rows, characters] = [0, 0];
    for (const row of this.#prepare(`SELECT ${read} FROM ${table}`).iterate()) {
      for (const [at, column] of columns.entries()) {
        const fitted = fitValue(row[column.name], column);
        if (fitted.kind === 'unfit')
          throw new Error(`${table}.${column.name} ${fitted.why}, in the row with ${nameRow(keys, row)}`);
        page[at]?.push(fitted.text);
        characters += fitted.text?.length ?? 0;
      }
      if (++rows < rowsPerPage && characters < charactersPerPage) continue;
      yield { rows, columns: page };
      page = columns.map(() => []);
      [rows, characters] = [0, 0];
    }
    if (rows > 0) yield { rows, columns: page };
  }

  /** Adds a table up without reading it into this process. */
  sums({ table, columns }: TablePlan): TableSums {
    const parts = columns.flatMap(({ name, type }) =>
      type === 'text' || type === 'bytea'
        ? [`count(${name})`, `0`, `coalesce(sum(length(CAST(${name} AS BLOB))), 0)`]
        : [`count(${name})`, ...['/', '%'].map((part) => `coalesce(sum(${name} ${part} ${sumUnit}), 0)`)],
    );
    const named = ['count(*)', ...parts].map((part, at) => `${part} AS part_${at}`);
    const row = this.#prepare(`SELECT ${named.join(', ')} FROM ${table}`).get() ?? {};
    const part = (at: number): bigint => row[`part_${at}`] as bigint;
    const sums = columns.map(({ name }, at) => {
      const first = 1 + at * 3;
      return [name, { values: part(first), sum: part(first + 1) * sumUnit + part(first + 2) }] as const;
    });
    return { rows: part(0), columns: new Map(sums) };
  }

  close(): void {
    this.#database.close();
  }

  #describe(table: string): readonly { readonly name: string; readonly isKey: boolean }[] {
    const rows = this.#prepare(`PRAGMA table_info(${table})`).all();
    return rows.map((row) => ({ name: String(row['name']), isKey: Number(row['pk']) > 0 }));
  }

  /** Integers are read exactly, beyond 2^53, too. */
  #prepare(sql: string): StatementSync {
    const statement = this.#database.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }
}

/** The key of a row, as an operator finds it again. */
function nameRow(keys: readonly string[], row: Readonly<Record<string, SQLOutputValue>>): string {
  return keys
    .map((key) => {
      const value = row[key] ?? null;
      if (value instanceof Uint8Array) return `${key} x'${Buffer.from(value).toString('hex')}'`;
      return `${key} ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`;
    })
    .join(', ');
}

type IntegerType = Exclude<ColumnType, 'text' | 'bytea'>;

/** The largest integers of the types; the smallest are one below their negatives. */
const largest: Readonly<Record<IntegerType, bigint>> = {
  bigint: 2n ** 63n - 1n,
  integer: 2n ** 31n - 1n,
};

/** A value of SQLite as PostgreSQL reads it from a text. */
type FittedValue =
  | { readonly kind: 'fits'; readonly text: string | null }
  | { readonly kind: 'unfit'; readonly why: string };

/**
 * Writes a value for a column of PostgreSQL. SQLite keeps values of any type in a column, and characters that PostgreSQL
 * can't store: such a value is `unfit`, and nothing is rounded or cut.
 */
export function fitValue(value: unknown, { type, isNullable }: CopiedColumn): FittedValue {
  if (value === null) return isNullable ? { kind: 'fits', text: null } : unfit('is null, and needs a value');
  if (type === 'bytea') return fitBytes(value);
  return type === 'text' ? fitText(value) : fitInteger(value, type);
}

function fitBytes(value: unknown): FittedValue {
  if (!(value instanceof Uint8Array)) return unfit('is no bytes');
  return { kind: 'fits', text: `\\x${Buffer.from(value).toString('hex')}` };
}

function fitText(value: unknown): FittedValue {
  if (typeof value !== 'string') return unfit('is no text');
  if (value.includes('\0')) return unfit("has the character U+0000, which PostgreSQL can't store");
  return { kind: 'fits', text: value };
}

function fitInteger(value: unknown, type: IntegerType): FittedValue {
  if (typeof value !== 'bigint') return unfit('is no whole number');
  if (value > largest[type] || value < -largest[type] - 1n)
    return unfit(`is too large for PostgreSQL's ${type}`);
  return { kind: 'fits', text: String(value) };
}

function unfit(why: string): FittedValue {
  return { kind: 'unfit', why };
}
