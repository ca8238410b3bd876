import { pickValues, toPlain } from '../../src/storage/engine.ts';
import type {
  Engine,
  FixedUnit,
  FixedUnitName,
  ResultRow,
  SqlValue,
  Statement,
} from '../../src/storage/engine.ts';
import { valuesToOpenBudgeted, valuesToOpen } from '../../src/storage/records/open-record.ts';
import { valuesToSettle } from '../../src/storage/records/settle-record.ts';
import {
  budgetClaim,
  budgetedRecord,
  groupClaim,
  groupedRecord,
  openedRecord,
  settledBudgeted,
  settledRecord,
  settlementOf,
  twiceBudgetedRecord,
} from './stored-rows.ts';

/** The values of each fixed unit, in an order in which each has something to do for `payingKey`. */
export const fixedUnitValues: { readonly [Name in FixedUnitName]: readonly SqlValue[] } = {
  open_record: valuesToOpen(openedRecord, 'owner'),
  settle_record: valuesToSettle(settledRecord, 'posting', 7),
  open_budgeted: valuesToOpenBudgeted(budgetedRecord, [budgetClaim], 'owner'),
  settle_budgeted: valuesToSettle(settledBudgeted, 'budgeted posting', 8),
  open_grouped: valuesToOpenBudgeted(groupedRecord, [groupClaim], 'owner'),
  settle_grouped: valuesToSettle(settlementOf(groupedRecord), 'grouped posting', 9),
  open_both: valuesToOpenBudgeted(twiceBudgetedRecord, [budgetClaim, groupClaim], 'owner'),
  settle_both: valuesToSettle(settlementOf(twiceBudgetedRecord), 'posting in both', 10),
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
