import type { CustomTypesConfig } from 'pg';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { SqlValue } from '../../engine.ts';

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
