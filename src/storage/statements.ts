import type { Engine, Row, Statement } from './engine.ts';

/** The placeholders of a list of values. An empty list is `NULL`, of which nothing is a member: PostgreSQL has no `IN ()`. */
export function placesOf(values: readonly unknown[]): string {
  return values.length === 0 ? 'NULL' : values.map(() => '?').join(', ');
}

/**
 * Begins a statement that reads declared keys as the table `wanted`: its first value is the text of `rowsOf`. All of them
 * are one value: with a statement for each, a thousand keys would take seconds, in which no other unit is run on any node,
 * and with a value for each column there is a limit of values.
 */
export function declareTable(columns: Readonly<Record<string, string>>): string {
  const read = Object.entries(columns).map(
    ([name, type], at) => `CAST(value ->> ${at} AS ${type}) AS ${name}`,
  );
  return `WITH wanted AS MATERIALIZED (SELECT ${read.join(', ')} FROM json_each(?))`;
}

/** The text of such a table, from rows in the order of its columns. PostgreSQL reads each value of an object, not of a list. */
export function rowsOf(rows: readonly Statement['values'][]): string {
  return JSON.stringify(Object.fromEntries(rows.entries()));
}

/** The rows of one statement, read beside the units. */
export async function readRows(engine: Pick<Engine, 'read'>, statement: Statement): Promise<readonly Row[]> {
  const [rows = []] = await engine.read([statement]);
  return rows;
}

/** The rows of one statement that finds a few of them by an index; requests or nodes depend on it. */
export async function lookUpRows(
  engine: Pick<Engine, 'lookUp'>,
  statement: Statement,
): Promise<readonly Row[]> {
  const [rows = []] = await engine.lookUp([statement]);
  return rows;
}

/** The number that a statement reads as `count`. */
export async function readCount(engine: Engine, statement: Statement): Promise<number> {
  const [row] = await readRows(engine, statement);
  return Number(row?.['count'] ?? 0);
}
