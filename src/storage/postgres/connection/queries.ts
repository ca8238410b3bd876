import type { QueryConfig, QueryResult } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Results, Statement } from '../../engine.ts';
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

/**
 * A unit of statements as one transaction. The connection refuses writes outside of a transaction that says `READ WRITE`:
 * when `BEGIN` itself fails, as by a time limit, each of the statements behind it would be committed alone.
 */
export function transactionOf(unit: readonly Statement[]): readonly QueryConfig[] {
  return [
    { text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' },
    { text: `SELECT pg_advisory_xact_lock(${unitLock})` },
    ...unit.map(queryOf),
    { text: 'COMMIT' },
  ];
}

/** The rows of the statements of a unit. Throws when the transaction was not committed: a failed one ends in a rollback. */
export function readTransaction(results: readonly QueryResult[]): Results {
  if (results.at(-1)?.command !== 'COMMIT')
    throw new StorageError('the database did not commit the unit', 'unknown');
  return results.slice(2, -1).map(({ rows }) => rows as Results[number]);
}

/** Reads of one moment. A statement alone is of one moment anyway. */
export function snapshotOf(statements: readonly Statement[]): readonly QueryConfig[] {
  if (statements.length === 1) return statements.map(queryOf);
  return [{ text: 'BEGIN ISOLATION LEVEL REPEATABLE READ' }, ...statements.map(queryOf), { text: 'COMMIT' }];
}
