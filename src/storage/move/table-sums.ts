import type { TablePlan } from './plan-table.ts';

/** What a column amounts to: how many values it has, and the sum of its integers, or of the bytes of its texts. */
interface ColumnSum {
  readonly values: bigint;
  readonly sum: bigint;
}

/** What a table amounts to, by which both sides are compared. */
export interface TableSums {
  readonly rows: bigint;
  readonly columns: ReadonlyMap<string, ColumnSum>;
}

/** Throws when the two sides differ: something was lost or changed on the way. */
export function compareSums({ table, columns }: TablePlan, source: TableSums, target: TableSums): void {
  if (source.rows !== target.rows)
    throw new Error(`${table} has ${source.rows} rows in SQLite, but ${target.rows} in PostgreSQL`);
  for (const { name } of columns) {
    const [from, to] = [source.columns.get(name), target.columns.get(name)];
    if (from === undefined || to === undefined || from.values !== to.values || from.sum !== to.sum)
      throw new Error(
        `${table}.${name} differs: ${describe(from)} in SQLite, but ${describe(to)} in PostgreSQL`,
      );
  }
}

function describe(found: ColumnSum | undefined): string {
  return found === undefined ? 'nothing' : `${found.values} values with the sum ${found.sum}`;
}
