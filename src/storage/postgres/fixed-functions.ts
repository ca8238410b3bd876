import { replacePlaceholders } from '../engine.ts';
import type { FixedUnit, ResultRow } from '../engine.ts';
import { defineFunction, searchByIndex, withoutFlush } from './database-function.ts';
import type { DatabaseFunction } from './database-function.ts';

/** Writes a fixed unit as a function. It returns the values that the unit results in, or nothing where it has no result. */
export function functionOf(unit: FixedUnit): DatabaseFunction {
  const { name, takes, locks, preparations, decisions, decided, changes, columns, mayBeForgotten } = unit;
  const names = Object.keys(takes);
  const writeStep = (step: string): string =>
    replacePlaceholders(step, { value: (value) => `$${names.indexOf(value) + 1}`, decided: variable });
  const variables = Object.entries(decided).map(([column, type]) => `${variable(column)} ${type};`);
  const into = `INTO ${Object.keys(decided).map(variable).join(', ')}`;
  const steps = [
    ...firstOf(locks.map(({ table, where }) => `PERFORM 1 FROM ${table} WHERE ${where} FOR UPDATE;`)),
    ...preparations.map((preparation) => `${preparation};`),
    ...firstOf(decisions.map((decision) => `${decision} ${into};`)),
    'IF NOT FOUND THEN RETURN NULL; END IF;',
    ...changes.map((change) => `${change};`),
    `RETURN ARRAY[${columns.map(variable).join(', ')}];`,
  ];
  return defineFunction({
    name,
    types: Object.values(takes),
    returns: 'bigint[]',
    settings: searchByIndex,
    body: `DECLARE ${variables.join(' ')}
BEGIN ${mayBeForgotten ? withoutFlush : ''} ${steps.map(writeStep).join('\n')} END`,
  });
}

/** The variable of a column of the row that decides: no column of a table has such a name. */
const variable = (column: string): string => `decided_${column}`;

/** Statements of which each is run only where the ones before it found no row. */
function firstOf(statements: readonly string[]): readonly string[] {
  return statements.map((statement, at) => (at === 0 ? statement : `IF NOT FOUND THEN ${statement} END IF;`));
}

/** The row of a call. */
export function readFixedRow(rows: readonly unknown[]): ResultRow {
  const [row] = rows as readonly { readonly row: ResultRow }[];
  return row?.row ?? null;
}
