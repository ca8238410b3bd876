import type { FixedUnit, ResultRow } from '../engine.ts';
import { defineFunction, searchByIndex, withoutFlush } from './database-function.ts';
import type { DatabaseFunction } from './database-function.ts';

/** Writes a fixed unit as a function. It returns the values of the row that the unit results in, or nothing for none. */
export function functionOf(unit: FixedUnit): DatabaseFunction {
  const { name, types, locks, changes, columns, result, mayBeForgotten } = unit;
  const steps = [
    ...locks.map(({ table, where }) => `PERFORM 1 FROM ${table} WHERE ${where} FOR UPDATE`),
    ...changes,
    `RETURN (SELECT ARRAY[${columns.map((column) => `${column}::bigint`).join(', ')}] FROM (${result}) AS row)`,
  ];
  const body = steps.map((step) => `${numbered(step)};`).join('\n');
  return defineFunction({
    name,
    types,
    returns: 'bigint[]',
    settings: searchByIndex,
    body: `BEGIN ${mayBeForgotten ? withoutFlush : ''} ${body} END`,
  });
}

/** Writes the placeholders `?1`, `?2`, … as `$1`, `$2`, … */
function numbered(sql: string): string {
  return sql.replaceAll(/\?(\d+)/g, '$$$1');
}

/** The row of a call. */
export function readFixedRow(rows: readonly unknown[]): ResultRow {
  const [row] = rows as readonly { readonly row: ResultRow }[];
  return row?.row ?? null;
}
