import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { pickValues, toPlain } from '../engine.ts';
import type {
  FixedUnit,
  FixedUnitName,
  PlainStatement,
  ResultRow,
  Results,
  Row,
  SqlValue,
  Statement,
} from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { failureOf } from './failure-reason.ts';
import type { Unit, UnitResult, UnitRows } from './thread-messages.ts';

/** Runs units on one connection, each statement prepared once. */
export class UnitRunner {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();
  readonly #fixed = new Map<FixedUnitName, PreparedUnit>();
  readonly #waitsForDisk: boolean;
  #isWaiting: boolean;

  /** `waitsForDisk`: a commit has to survive a loss of power, unless all of its units may be forgotten. */
  constructor(database: DatabaseSync, waitsForDisk: boolean) {
    this.#database = database;
    this.#waitsForDisk = waitsForDisk;
    this.#isWaiting = waitsForDisk;
  }

  /**
   * Runs units in one commit; each is whole or not at all, and fails alone. First they are run without savepoints, which
   * cost a tenth of a commit. If one fails, nothing of that is kept, and all are run again with savepoints.
   */
  commit(units: readonly Unit[]): readonly UnitResult[] {
    let hasFailed = false;
    if (this.#waitsForDisk) this.#waitForDisk(!units.every(mayBeForgotten));
    const results = this.#transaction('BEGIN IMMEDIATE', units, (unit) => {
      try {
        return { kind: 'done', done: this.#run(unit) };
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    });
    if (!hasFailed || units.length === 1) return results;
    return this.#transaction('BEGIN IMMEDIATE', units, (unit) => this.#savepoint(unit));
  }

  /** Sets whether the next commit waits until it is on the disk: with it, everything that was committed before it is, too. */
  #waitForDisk(waits: boolean): void {
    if (waits === this.#isWaiting) return;
    this.#prepare(`PRAGMA synchronous = ${waits ? 'FULL' : 'NORMAL'}`).run();
    this.#isWaiting = waits;
  }

  /** Reads in one snapshot. */
  read(unit: Unit): readonly UnitResult[] {
    return this.#transaction('BEGIN', [unit], () => ({ kind: 'done', done: this.#run(unit) }));
  }

  #transaction(
    begin: string,
    units: readonly Unit[],
    work: (unit: Unit) => UnitResult,
  ): readonly UnitResult[] {
    try {
      this.#prepare(begin).run();
      const results = units.map(work);
      this.#prepare('COMMIT').run();
      return results;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      const failure = { kind: 'failed', ...failureOf(error) } as const;
      return units.map(() => failure);
    }
  }

  /** A savepoint: a unit that fails must not undo its neighbours of the same commit. */
  #savepoint(unit: Unit): UnitResult {
    this.#database.exec('SAVEPOINT unit');
    try {
      const done = this.#run(unit);
      this.#database.exec('RELEASE unit');
      return { kind: 'done', done };
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO unit; RELEASE unit');
      return { kind: 'failed', ...failureOf(error) };
    }
  }

  #run(unit: Unit): UnitRows {
    return unit.kind === 'fixed'
      ? this.#fixedUnit(unit.name).run(unit.values)
      : this.#runStatements(unit.statements);
  }

  #fixedUnit(name: FixedUnitName): PreparedUnit {
    let prepared = this.#fixed.get(name);
    if (prepared === undefined) {
      prepared = new PreparedUnit(this.#database, fixedUnits[name]);
      this.#fixed.set(name, prepared);
    }
    return prepared;
  }

  #runStatements(statements: readonly Statement[]): Results {
    return statements.map(({ sql, values }) =>
      this.#prepare(sql)
        .all(...values)
        .map(readRow),
    );
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      statement.setReadBigInts(true);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

function mayBeForgotten(unit: Unit): boolean {
  return unit.kind === 'fixed' && fixedUnits[unit.name].mayBeForgotten;
}

/** A statement of a fixed unit, prepared in its plain form. */
interface PreparedStep {
  readonly statement: StatementSync;
  readonly plain: PlainStatement;
}

/**
 * Has a statement that fails keep what it has changed so far: the whole unit is undone then. Otherwise every page that the
 * statement changes would be copied first, so that the statement alone could be undone: a twentieth of a settlement.
 */
function withoutJournal(sql: string): string {
  return sql.replace(/^\s*(INSERT|UPDATE)\b/, '$1 OR FAIL');
}

/** A fixed unit on one connection. Nothing runs beside its units, so they need no locks. */
class PreparedUnit {
  readonly #preparations: readonly PreparedStep[];
  readonly #decisions: readonly PreparedStep[];
  readonly #changes: readonly PreparedStep[];
  /** Where the values of its result are in the row that decides. */
  readonly #resultAt: readonly number[];

  constructor(database: DatabaseSync, unit: FixedUnit) {
    const prepare = (sql: string): PreparedStep => {
      const plain = toPlain(sql, unit);
      return { statement: database.prepare(withoutJournal(plain.sql)), plain };
    };
    this.#preparations = unit.preparations.map(prepare);
    this.#decisions = unit.decisions.map(prepare);
    this.#changes = unit.changes.map(prepare);
    const names = Object.keys(unit.decided);
    this.#resultAt = unit.columns.map((column) => names.indexOf(column));
    for (const { statement } of this.#decisions) {
      statement.setReadBigInts(true);
      statement.setReturnArrays(true);
    }
  }

  run(values: readonly SqlValue[]): ResultRow {
    for (const { statement, plain } of this.#preparations) statement.run(...pickValues(plain, values));
    const decided = this.#decide(values);
    if (decided === undefined) return null;
    // As they were read: integers stay integers, which as numbers would be bound as floating point.
    const all = [...values, ...decided];
    for (const { statement, plain } of this.#changes) statement.run(...pickValues(plain, all));
    return this.#resultAt.map((at) => readValue(decided[at] ?? null) as SqlValue);
  }

  #decide(values: readonly SqlValue[]): readonly SQLOutputValue[] | undefined {
    for (const { statement, plain } of this.#decisions) {
      // Arrays, as set above: the types of Node know of objects only.
      const rows = statement.all(
        ...pickValues(plain, values),
      ) as unknown as readonly (readonly SQLOutputValue[])[];
      if (rows.length > 0) return rows[0];
    }
  }
}

function readRow(row: Record<string, SQLOutputValue>): Row {
  for (const [name, value] of Object.entries(row)) row[name] = readValue(value);
  return row as Row;
}

/**
 * Integers beyond 2^53, which earlier versions could write, are read as the nearest number: a row that can't be read at
 * all would fail every list that it is on. The audit says which accounts they are in.
 */
function readValue(value: SQLOutputValue): SQLOutputValue {
  return typeof value === 'bigint' ? Number(value) : value;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
