import type { Engine, Row, Statement } from './engine.ts';

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
