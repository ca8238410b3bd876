import { createHash } from 'node:crypto';
import type { QueryConfig } from 'pg';
import { replacePlaceholders } from '../engine.ts';
import type { FixedUnit, ResultRow, Row, SqlValue } from '../engine.ts';
import { checkValues } from './connection/queries.ts';

/** A function of the database: one call is one transaction, which waits for nothing on the way. */
export interface DatabaseFunction {
  /** Its name with a checksum of its text, so that nodes of several versions have their own beside each other. */
  readonly called: string;
  /** Creates it, if the database does not have it. */
  readonly create: string;
  call(values: readonly SqlValue[]): QueryConfig;
}

/** Calls functions of the database. */
export interface FunctionCaller {
  /**
   * Calls a function of the database that works on slots; calls with the same `spreadBy` are made one after the other.
   * `rows` names what a function locks that works on one key: its calls are refused for a while where another session has
   * locked that. Without it, as for a function that looks through many keys, no call is refused for what another one met.
   */
  callFunction(
    called: DatabaseFunction,
    spreadBy: string,
    values: readonly SqlValue[],
    rows?: string | null,
  ): Promise<readonly Row[]>;
}

interface FunctionText {
  readonly name: string;
  /** The types of its values. */
  readonly types: readonly string[];
  /** What stands behind `RETURNS`. */
  readonly returns: string;
  /** PL/pgSQL from `DECLARE` or `BEGIN` to the last `END`; its values are `$1`, `$2`, … */
  readonly body: string;
}

/** Writes a function. A call selects everything that it returns. */
export function defineFunction({ name, types, returns, body }: FunctionText): DatabaseFunction {
  const checksum = createHash('sha256')
    .update(`${types.join()} ${returns} ${body}`)
    .digest('hex')
    .slice(0, 12);
  const called = `textgate_${name}_${checksum}`;
  // What requests wait for: to read a single value as a table takes 3 µs more.
  const from = returns.startsWith('bigint') ? '' : '* FROM ';
  const text = `SELECT ${from}${called}(${types.map((_, index) => `$${index + 1}`).join(', ')}) AS row`;
  return {
    called,
    create: `CREATE OR REPLACE FUNCTION ${called}(${types.join(', ')}) RETURNS ${returns} LANGUAGE plpgsql AS
      $function$ ${body} $function$`,
    call: (values) => ({ name: called, text, values: checkValues(values) }),
  };
}

/**
 * Has a function commit without waiting for the disk: a crash of the database may undo what it did in its last moments. A
 * statement of its body: a condition is evaluated by itself, where `PERFORM` would be a query.
 */
export const withoutFlush = `IF set_config('synchronous_commit', 'off', true) IS NULL THEN END IF;`;

/** Statements, and the integers in which they result. */
interface Step {
  readonly statements: string;
  readonly results: readonly string[];
}

/** What the function of a unit does beside it, where the unit decides something. */
export interface Beside {
  readonly name?: string;
  /** Values that it takes before those of the unit. */
  readonly takes?: FixedUnit['takes'];
  /** Its variables, with their types. */
  readonly declares: readonly string[];
  /** Done before the changes of the unit; what it returns is all then. Its results stand before that of the unit. */
  readonly first?: Step;
  /** Done at the end. Its results stand behind that of the unit. */
  readonly last?: Step;
}

const nothing: Step = { statements: '', results: [] };

/** Writes a fixed unit as a function. It returns the values that the unit results in, or nothing where it has no result. */
export function functionOf(unit: FixedUnit, beside: Beside = { declares: [] }): DatabaseFunction {
  const { locks, preparations, decisions, decided, changes, columns, mayBeForgotten } = unit;
  const { name = unit.name, declares, first = nothing, last = nothing } = beside;
  const takes = { ...beside.takes, ...unit.takes };
  const names = Object.keys(takes);
  const writeStep = (step: string): string =>
    replacePlaceholders(step, { value: (value) => `$${names.indexOf(value) + 1}`, decided: variable });
  const variables = Object.entries(decided).map(([column, type]) => `${variable(column)} ${type}`);
  const into = `INTO ${Object.keys(decided).map(variable).join(', ')}`;
  const results = [...first.results, ...columns.map(variable), ...last.results];
  const steps = [
    ...firstOf(locks.map(({ table, where }) => `PERFORM 1 FROM ${table} WHERE ${where} FOR UPDATE;`)),
    ...preparations.map((preparation) => `${preparation};`),
    ...firstOf(decisions.map((decision) => `${decision} ${into};`)),
    'IF NOT FOUND THEN RETURN NULL; END IF;',
    first.statements,
    ...changes.map((change) => `${change};`),
    last.statements,
    `RETURN ARRAY[${results.join(', ')}];`,
  ];
  return defineFunction({
    name,
    types: Object.values(takes),
    returns: 'bigint[]',
    body: `DECLARE ${[...declares, ...variables].map((declared) => `${declared};`).join(' ')}
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
