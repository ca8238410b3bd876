import { copiedTables, tablesLeftOut } from './copied-tables.ts';

/** The types of columns that can be copied, as `information_schema` writes them. */
const columnTypes = ['text', 'bigint', 'integer'] as const;

export type ColumnType = (typeof columnTypes)[number];

/** A column that both databases have, with its type and rules in the target. */
export interface CopiedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

/** A column of the target, as it describes itself. */
export interface TargetColumn {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
  /** Whether a row may leave it out. */
  readonly hasDefault: boolean;
}

/** What is copied of one table. */
export interface TablePlan {
  readonly table: string;
  readonly columns: readonly CopiedColumn[];
}

/** Throws when the source has a table that is neither copied nor left out on purpose: its rows would be lost unnoticed. */
export function checkTables(found: readonly string[]): void {
  const unknown = found.filter(
    (table) =>
      !copiedTables.some((known) => known === table) &&
      !tablesLeftOut.has(table) &&
      // Of SQLite itself, as those of its statistics.
      !table.startsWith('sqlite_'),
  );
  if (unknown.length > 0)
    throw new Error(`tables that this version can't move: ${unknown.join(', ')}; nothing was copied`);
}

/** Matches the columns of a table by their names. Throws when one has no counterpart: its values would be lost unnoticed. */
export function planTable(
  table: string,
  source: readonly string[],
  target: readonly TargetColumn[],
): TablePlan {
  const columns = source.map((name) => {
    const counterpart = target.find((column) => column.name === name);
    if (counterpart === undefined) throw new Error(`${table}.${name} has no counterpart in PostgreSQL`);
    const type = columnTypes.find((known) => known === counterpart.type);
    if (type === undefined)
      throw new Error(`${table}.${name} has the type ${counterpart.type}, which can't be copied`);
    return { name, type, isNullable: counterpart.isNullable };
  });
  for (const { name, isNullable, hasDefault } of target)
    if (!source.includes(name) && !isNullable && !hasDefault)
      throw new Error(`${table}.${name} has no counterpart in SQLite, and needs a value`);
  return { table, columns };
}
