import type { Engine, Row, SqlValue, Statement } from './engine.ts';

/**
 * Writes a statement, or a part of one. What is given is a value, in whose place is a placeholder; a part that is given is
 * written in its place, and brings its values.
 */
export function sql(texts: TemplateStringsArray, ...given: readonly (SqlValue | Statement)[]): Statement {
  let text = texts[0] ?? '';
  const values: SqlValue[] = [];
  given.forEach((one, at) => {
    const isPart = typeof one === 'object' && one !== null;
    text += (isPart ? one.sql : '?') + (texts[at + 1] ?? '');
    if (!isPart) values.push(one);
    else if (one.values.length > 0) values.push(...one.values);
  });
  return { sql: text, values };
}

/** A part that is written as it is, such as names of columns: never what someone has given. */
export function raw(text: string | number): Statement {
  return { sql: String(text), values: [] };
}

/** A list of values as a part. An empty list is `NULL`, of which nothing is a member: PostgreSQL has no `IN ()`. */
export function listOf(values: readonly SqlValue[]): Statement {
  return { sql: values.length === 0 ? 'NULL' : values.map(() => '?').join(', '), values };
}

/** Parts with a text between them. */
export function joined(parts: readonly Statement[], between: string): Statement {
  return { sql: parts.map((part) => part.sql).join(between), values: parts.flatMap(({ values }) => values) };
}

/** The conditions of a statement; nothing without any. */
export function where(conditions: readonly Statement[]): Statement {
  return conditions.length === 0 ? raw('') : sql` WHERE ${joined(conditions, ' AND ')}`;
}

/** The condition that always holds. */
export const anyway = raw('1 = 1');

/**
 * Begins a statement that reads rows as the table `wanted`, which is empty where a condition does not hold. All rows are one
 * value: with a statement for each, a thousand keys would take seconds, in which no other unit is run on any node, and with a
 * value for each column there is a limit of values. PostgreSQL reads each value of an object, not of a list.
 */
export function withWanted(
  columns: Readonly<Record<string, string>>,
  rows: readonly (readonly SqlValue[])[],
  condition: Statement = anyway,
): Statement {
  const read = Object.entries(columns).map(
    ([name, type], at) => `CAST(value ->> ${at} AS ${type}) AS ${name}`,
  );
  const given = JSON.stringify(Object.fromEntries(rows.entries()));
  return sql`WITH wanted AS MATERIALIZED (SELECT ${raw(read.join(', '))} FROM json_each(${given}) WHERE ${condition})`;
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
