import { pickValues, toPlain } from '../../src/storage/engine.ts';
import type { FixedUnit, FixedUnitName, SqlValue, Statement } from '../../src/storage/engine.ts';
import { valuesToOpen } from '../../src/storage/records/open-statement.ts';
import { valuesToSettle } from '../../src/storage/records/settle-statement.ts';
import { openedRecord, settledRecord } from './stored-rows.ts';

/** The values of each fixed unit, in an order in which each has something to do for `payingKey`. */
export const fixedUnitValues: { readonly [Name in FixedUnitName]: readonly SqlValue[] } = {
  open_record: valuesToOpen(openedRecord, 'owner'),
  settle_record: valuesToSettle(settledRecord, 'posting', 7),
  renew_lease: ['owner', 'next owner'],
  end_lease: ['next owner'],
  check_writes: [],
};

/** The statements of a fixed unit, locks included, as those of any other unit. */
export function statementsOf(
  { locks, changes, result }: FixedUnit,
  values: readonly SqlValue[],
): readonly Statement[] {
  const locked = locks.map(({ table, where }) => `SELECT * FROM ${table} WHERE ${where}`);
  return [...locked, ...changes, result].map(toPlain).map((plain) => ({
    sql: plain.sql,
    values: pickValues(plain, values),
  }));
}
