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
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import { requestKeyOf } from '../../src/storage/records/request-key.ts';
import { valuesToSettle } from '../../src/storage/records/settle-record.ts';
import { requestIdFor } from './request-ids.ts';
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

const claimName = 'c1'.repeat(32);

/** How a request under a claim is settled, and how its claim is begun or freed before that. */
function claimed(record: OpenedRecord, number: number) {
  const requestId = requestIdFor(`claimed ${number}`);
  const { createdAtMs, tail } = requestKeyOf(requestId);
  const named = ['next owner', record.keyId, `${claimName.slice(0, -1)}${number}`, createdAtMs, tail];
  const claim = { name: String(named[2]), isFreed: number === 1 };
  return {
    begin: [...named, 'a5'.repeat(32)],
    free: named,
    settle: valuesToSettle(settlement({ ...settlementOf({ ...record, requestId }), claim }, 10 + number)),
  };
}
const plainClaim = claimed(openedRecord, 1);
const budgetedClaim = claimed(budgetedRecord, 2);
const groupedClaim = claimed(groupedRecord, 3);
const twiceBudgetedClaim = claimed(twiceBudgetedRecord, 4);
const freedClaim = claimed(openedRecord, 5);

/** Values of each fixed unit, for `payingKey`. */
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
  settle_claimed: plainClaim.settle,
  settle_claimed_budgeted: budgetedClaim.settle,
  settle_claimed_grouped: groupedClaim.settle,
  settle_claimed_both: twiceBudgetedClaim.settle,
  begin_claim: freedClaim.begin,
  free_claim: freedClaim.free,
  renew_lease: ['owner', 'next owner'],
  end_lease: ['next owner'],
  check_writes: [],
  add_tokens: ['key_payer', 9],
};

/** Calls of all fixed units, in an order in which each has something to do for `payingKey`. */
export const fixedUnitCalls: readonly (readonly [FixedUnitName, readonly SqlValue[]])[] = [
  ...(
    [
      'number_kind',
      'open_record',
      'settle_record',
      'open_budgeted',
      'settle_budgeted',
      'open_grouped',
      'settle_grouped',
      'open_both',
      'settle_both',
      'renew_lease',
    ] as const
  ).map((name) => [name, fixedUnitValues[name]] as const),
  ['begin_claim', plainClaim.begin],
  ['settle_claimed', plainClaim.settle],
  ['begin_claim', budgetedClaim.begin],
  ['settle_claimed_budgeted', budgetedClaim.settle],
  ['begin_claim', groupedClaim.begin],
  ['settle_claimed_grouped', groupedClaim.settle],
  ['begin_claim', twiceBudgetedClaim.begin],
  ['settle_claimed_both', twiceBudgetedClaim.settle],
  ...(['begin_claim', 'free_claim', 'end_lease', 'check_writes', 'add_tokens'] as const).map(
    (name) => [name, fixedUnitValues[name]] as const,
  ),
];

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
