import type { QueryConfig } from 'pg';
import type { Statement } from '../engine.ts';
import { checkValues } from './values.ts';

/** Writes the placeholders of a statement as PostgreSQL numbers them: `?` as `$1`, `$2`, … None of them is in a text. */
function numberPlaceholders(sql: string): string {
  let last = 0;
  return sql.replace(/\?/g, () => `$${++last}`);
}

/** A statement as pg takes it. Throws for a value that is none of SQL's. */
export function queryOf({ sql, values }: Statement): QueryConfig {
  return { text: numberPlaceholders(sql), values: checkValues(values) };
}

/** Every unit of statements takes this lock first: on all nodes they run one after the other, as on SQLite. */
const unitLock = 7_483_911;

/** A unit of statements as one transaction. */
export function transactionOf(unit: readonly Statement[]): readonly QueryConfig[] {
  return [
    { text: 'BEGIN' },
    { text: `SELECT pg_advisory_xact_lock(${unitLock})` },
    ...unit.map(queryOf),
    { text: 'COMMIT' },
  ];
}

/** Reads of one moment. A statement alone is of one moment anyway. */
export function snapshotOf(statements: readonly Statement[]): readonly QueryConfig[] {
  if (statements.length === 1) return statements.map(queryOf);
  return [{ text: 'BEGIN ISOLATION LEVEL REPEATABLE READ' }, ...statements.map(queryOf), { text: 'COMMIT' }];
}
