import { pickValues, toPlain } from '../../src/storage/engine.ts';
import type {
  Engine,
  FixedUnit,
  FixedUnitName,
  ResultRow,
  SqlValue,
  Statement,
} from '../../src/storage/engine.ts';
import { openingOf } from '../../src/storage/records/open-record.ts';
import { openKind } from '../../src/storage/records/record-kinds.ts';
import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import { valuesToSettle } from '../../src/storage/records/settle-record.ts';
import {
  beginningOf,
  budgetedRecord,
  groupedRecord,
  openedRecord,
  settledBudgeted,
  settledRecord,
  settlementOf,
  twiceBudgetedRecord,
} from './stored-rows.ts';

/** The kind of the records, which is the only one. */
const kind = 1;

function settlement(record: SettledRecord, settledAtMs: number) {
  return { ...record, kind, settledAtMs, described: null, isUnwritten: false };
}

/** The values of each fixed unit, in an order in which each has something to do for `payingKey`. */
export const fixedUnitValues: { readonly [Name in FixedUnitName]: readonly SqlValue[] } = {
  number_kind: [kind, ...openKind(beginningOf(openedRecord))],
  open_record: openingOf(openedRecord, kind, 'owner').values,
  settle_record: valuesToSettle(settlement(settledRecord, 7)),
  open_budgeted: openingOf(budgetedRecord, kind, 'owner').values,
  settle_budgeted: valuesToSettle(settlement(settledBudgeted, 8)),
  open_grouped: openingOf(groupedRecord, kind, 'owner').values,
  settle_grouped: valuesToSettle(settlement(settlementOf(groupedRecord), 9)),
  open_both: openingOf(twiceBudgetedRecord, kind, 'owner').values,
  settle_both: valuesToSettle(settlement(settlementOf(twiceBudgetedRecord), 10)),
  renew_lease: ['owner', 'next owner'],
  end_lease: ['next owner'],
  check_writes: [],
  add_tokens: ['key_payer', 9],
};

/** The statements of a fixed unit, locks included, as those of any other unit; what is decided in it is null. */
export function statementsOf(unit: FixedUnit, values: readonly SqlValue[]): readonly Statement[] {
  const all = [...lockStatements(unit), ...unit.preparations, ...unit.decisions, ...unit.changes];
  const decided = Object.keys(unit.decided).map(() => null);
  return all.map((sql) => statementOf(unit, sql, [...values, ...decided]));
}

/** Reads the rows that a fixed unit locks. */
export function locksOf(unit: FixedUnit, values: readonly SqlValue[]): readonly Statement[] {
  return lockStatements(unit).map((sql) => statementOf(unit, sql, values));
}

/** Runs a fixed unit statement by statement, as any other statements; returns its result. */
export async function runOneByOne(
  engine: Engine,
  unit: FixedUnit,
  values: readonly SqlValue[],
): Promise<ResultRow> {
  for (const preparation of unit.preparations) await engine.run([statementOf(unit, preparation, values)]);
  for (const decision of unit.decisions) {
    const [[row] = []] = await engine.run([statementOf(unit, decision, values)]);
    if (row === undefined) continue;
    const decided = Object.values(row);
    const all = [...values, ...decided];
    for (const change of unit.changes) await engine.run([statementOf(unit, change, all)]);
    const names = Object.keys(unit.decided);
    return unit.columns.map((column) => decided[names.indexOf(column)] ?? null);
  }
  return null;
}

function lockStatements({ locks }: FixedUnit): readonly string[] {
  return locks.map(({ table, where }) => `SELECT * FROM ${table} WHERE ${where}`);
}

function statementOf(unit: FixedUnit, sql: string, values: readonly SqlValue[]): Statement {
  const plain = toPlain(sql, unit);
  return { sql: plain.sql, values: pickValues(plain, values) };
}
