import { createHash } from 'node:crypto';
import type { QueryConfig } from 'pg';
import type { FixedUnit, ResultRow, SqlValue } from '../engine.ts';
import { checkValues } from './values.ts';

/** A fixed unit as a function of the database: one call is one transaction, which waits for nothing on the way. */
export interface FixedFunction {
  /** Creates it, if the database does not have it. */
  readonly create: string;
  call(values: readonly SqlValue[]): QueryConfig;
}

/**
 * Writes a fixed unit as a function. Its name has a checksum of its text, so that nodes of several versions have their
 * own beside each other. It returns the values of the row that the unit results in, or nothing where there is none.
 */
export function functionOf(unit: FixedUnit): FixedFunction {
  const { name, types, locks, changes, columns, result, mayBeForgotten } = unit;
  const steps = [
    ...(mayBeForgotten ? [`PERFORM set_config('synchronous_commit', 'off', true)`] : []),
    ...locks.map(({ table, where }) => `PERFORM 1 FROM ${table} WHERE ${where} FOR UPDATE`),
    ...changes,
    `RETURN (SELECT ARRAY[${columns.map((column) => `${column}::bigint`).join(', ')}] FROM (${result}) AS row)`,
  ];
  const body = steps.map((step) => `${numbered(step)};`).join('\n');
  const checksum = createHash('sha256').update(`${types.join()} ${body}`).digest('hex').slice(0, 12);
  const called = `textgate_${name}_${checksum}`;
  const text = `SELECT ${called}(${types.map((_, index) => `$${index + 1}`).join(', ')}) AS row`;
  return {
    create: `CREATE OR REPLACE FUNCTION ${called}(${types.join(', ')}) RETURNS bigint[] LANGUAGE plpgsql AS
      $function$ BEGIN ${body} END $function$`,
    call: (values) => ({ name: called, text, values: checkValues(values) }),
  };
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
