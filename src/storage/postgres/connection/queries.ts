import type { CustomTypesConfig, QueryConfig, QueryResult } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Results, SqlValue, Statement } from '../../engine.ts';

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

/** The ids of the types that the statements read (`pg_type.dat` of PostgreSQL). */
const type = { bool: 16, int8: 20, int2: 21, int4: 23, text: 25, int8Array: 1016, numeric: 1700 } as const;

const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  [type.bool]: (text) => (text === 't' ? 1 : 0),
  [type.int2]: Number,
  [type.int4]: Number,
  // Integers beyond 2^53, which no version writes, are read as the nearest number: their row can still be read.
  [type.int8]: Number,
  // The type of a sum of integers.
  [type.numeric]: Number,
  [type.int8Array]: readIntegers,
};

/** Reads integers as numbers, conditions as 1 or 0, and everything else as text: like SQLite. */
export const valueTypes: CustomTypesConfig = {
  getTypeParser: ((id: number) => parsers[id] ?? String) as CustomTypesConfig['getTypeParser'],
};

/** Reads `{1,NULL,3}`. */
function readIntegers(text: string): readonly (number | null)[] {
  const items = text.slice(1, -1);
  return items === '' ? [] : items.split(',').map((item) => (item === 'NULL' ? null : Number(item)));
}

/** How many values a statement may have: their number has 16 bits, and pg would send what is left of a larger one. */
const maxValues = 65_535;

/** The values of a statement. Throws for one that is none of SQL's: pg would send `undefined` as a null. */
export function checkValues(values: readonly SqlValue[]): SqlValue[] {
  if (values.length > maxValues)
    throw new StorageError(`a statement has more than ${maxValues} values`, 'rejected');
  for (const value of values) {
    const isValue = typeof value === 'string' || value === null || Number.isFinite(value);
    if (!isValue) throw new StorageError(`a value of a statement is ${typeof value}`, 'rejected');
    // PostgreSQL has no such character; SQLite would cut the text there.
    if (typeof value === 'string' && value.includes('\0'))
      throw new StorageError('a text of a statement has a character of code 0', 'rejected');
  }
  return [...values];
}
