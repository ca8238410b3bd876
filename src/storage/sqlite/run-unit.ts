import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { Results, Row, Statement } from '../engine.ts';
import { failureOf } from './failure-reason.ts';
import type { NumberedUnit, UnitResult } from './thread-messages.ts';

/** Runs statements on one connection, each prepared once. */
export class UnitRunner {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Runs units in one commit; each is whole or not at all, and fails alone. */
  commit(units: readonly NumberedUnit[]): readonly UnitResult[] {
    return this.#transaction('BEGIN IMMEDIATE', units, (unit) => this.#savepoint(unit));
  }

  /** Reads in one snapshot. */
  read(unit: NumberedUnit): readonly UnitResult[] {
    const read = ({ id, unit: statements }: NumberedUnit): UnitResult => ({
      kind: 'done',
      id,
      rows: this.#run(statements),
    });
    return this.#transaction('BEGIN', [unit], read);
  }

  #transaction(
    begin: string,
    units: readonly NumberedUnit[],
    work: (unit: NumberedUnit) => UnitResult,
  ): readonly UnitResult[] {
    try {
      this.#database.exec(begin);
      const results = units.map(work);
      this.#database.exec('COMMIT');
      return results;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      return units.map(({ id }) => ({ kind: 'failed', id, ...failureOf(error) }));
    }
  }

  /** A savepoint: a unit that fails must not undo its neighbours of the same commit. */
  #savepoint({ id, unit }: NumberedUnit): UnitResult {
    this.#database.exec('SAVEPOINT unit');
    try {
      const rows = this.#run(unit);
      this.#database.exec('RELEASE unit');
      return { kind: 'done', id, rows };
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO unit; RELEASE unit');
      return { kind: 'failed', id, ...failureOf(error) };
    }
  }

  #run(statements: readonly Statement[]): Results {
    return statements.map(({ sql, values }) => {
      let statement = this.#prepared.get(sql);
      if (statement === undefined) {
        statement = this.#database.prepare(sql);
        statement.setReadBigInts(true);
        this.#prepared.set(sql, statement);
      }
      return statement.all(...values).map(readRow);
    });
  }
}

/**
 * Integers beyond 2^53, which earlier versions could write, are read as the nearest number: a row that can't be read at
 * all would fail every list that it is on. The audit says which accounts they are in.
 */
function readRow(row: Record<string, SQLOutputValue>): Row {
  for (const [name, value] of Object.entries(row)) if (typeof value === 'bigint') row[name] = Number(value);
  return row as Row;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
