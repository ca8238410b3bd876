import type { QueryConfig, QueryResult } from 'pg';
import type { Clock } from '../../domain/ports/clock.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { Engine } from '../engine.ts';
import { readTarget } from '../postgres/connection/connection-target.ts';
import type { ConnectionTarget } from '../postgres/connection/connection-target.ts';
import { explainUnreachable } from '../postgres/connection/failures.ts';
import { queryOf } from '../postgres/connection/queries.ts';
import { Session } from '../postgres/connection/session.ts';
import { explainSteps, makeSteps, migrationLimits } from '../postgres/migrate.ts';
import { createPartitionsWithin } from '../postgres/partitions.ts';
import type { Page } from './sqlite-source.ts';
import { copiedTables } from './table-plan.ts';
import type { TablePlan, TableSums, TargetColumn } from './table-plan.ts';

/** How long the server waits for the locks of processes that use the database, in milliseconds. */
const lockMs = 10_000;

/** How long the server keeps the transaction while the source is being read and verified, in milliseconds. */
const idleMs = 3_600_000;

/** The tables that have to be empty. */
const emptyTables = [...copiedTables, 'open_rows'];

/**
 * A PostgreSQL database that is filled in one transaction, schema included: whatever ends the process or the connection
 * before the commit leaves the database as it was. It is one connection, and never opened again: statements behind a lost
 * one would be outside of the transaction.
 */
export class PostgresTarget {
  /** Its URL without the password. */
  readonly name: string;
  readonly #target: ConnectionTarget;
  readonly #session: Session;

  private constructor(url: string, clock: Clock) {
    this.#target = readTarget(url);
    this.name = this.#target.name;
    this.#session = new Session({
      target: this.#target,
      limits: migrationLimits,
      callsFunctions: false,
      clock,
    });
  }

  /** Opens it and begins its transaction. Throws when it can't be used, or is not empty. */
  static async open(url: string, clock: Clock): Promise<PostgresTarget> {
    const target = await inArgument(async () => new PostgresTarget(url, clock));
    try {
      await inArgument(() => target.#begin(clock.now()));
      return target;
    } catch (error) {
      await target.close();
      throw error;
    }
  }

  async columnsOf(table: string): Promise<readonly TargetColumn[]> {
    const rows = await this.#rows(
      `SELECT column_name, data_type, is_nullable = 'YES' AS nullable,
         column_default IS NOT NULL OR is_generated = 'ALWAYS' OR is_identity = 'YES' AS filled
       FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = '${table}'`,
    );
    return rows.map((row) => ({
      name: String(row['column_name']),
      type: String(row['data_type']),
      isNullable: row['nullable'] === 1,
      hasDefault: row['filled'] === 1,
    }));
  }

  /** Adds the rows of a page. */
  async insert({ table, columns }: TablePlan, { columns: values }: Page): Promise<void> {
    const names = columns.map(({ name }) => name).join(', ');
    const lists = columns.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ');
    await this.#send({
      text: `INSERT INTO ${table} (${names}) SELECT * FROM unnest(${lists})`,
      values: values.map((list) => [...list]),
    });
  }

  /** Adds a table up on the server. */
  async sums({ table, columns }: TablePlan): Promise<TableSums> {
    const parts = columns.flatMap(({ name, type }, at) => {
      const amount =
        type === 'text'
          ? `octet_length(convert_to(${name}, 'UTF8'))`
          : type === 'bytea'
            ? `octet_length(${name})`
            : name;
      return [`count(${name})::text AS values_${at}`, `coalesce(sum(${amount}), 0)::text AS sum_${at}`];
    });
    const [row = {}] = await this.#rows(`SELECT count(*)::text AS rows, ${parts.join(', ')} FROM ${table}`);
    const part = (name: string): bigint => BigInt(String(row[name]));
    const sums = columns.map(
      ({ name }, at) => [name, { values: part(`values_${at}`), sum: part(`sum_${at}`) }] as const,
    );
    return { rows: part('rows'), columns: new Map(sums) };
  }

  /** Reads what was written, inside the transaction, as an engine reads what was committed. */
  readonly read: Engine['read'] = async (statements) => {
    const results = await this.#send(...statements.map(queryOf));
    return results.map(({ rows }) => rows as Record<string, string | number | null>[]);
  };

  /** Has the server look at what it got: without that it would choose the plans of empty tables. */
  async analyze(): Promise<void> {
    for (const table of copiedTables) await this.#send({ text: `ANALYZE ${table}` });
  }

  async commit(): Promise<void> {
    // The numbers of the source are taken.
    await this.#send({
      text: `SELECT setval(pg_get_serial_sequence('accounts', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM accounts), false)`,
    });
    await this.#send({ text: 'ALTER TABLE record_rows ENABLE TRIGGER usage_of_records' });
    const [result] = await this.#session.send([{ text: 'COMMIT' }]).catch((error: unknown) => {
      throw new Error(
        `whether ${this.name} has committed is not known, because the connection failed meanwhile: ${(error as Error).message}. Run the command again: it copies everything, or refuses because everything is there`,
        { cause: error },
      );
    });
    // A transaction that failed before ends in a rollback.
    if (result?.command !== 'COMMIT') throw new Error(`${this.name} did not commit; nothing was kept there`);
  }

  /** Ends the connection; the server undoes what is not committed. */
  close(): Promise<void> {
    return this.#session.end();
  }

  async #begin(nowMs: number): Promise<void> {
    await this.#session.opened.catch((error: unknown) => {
      throw explainUnreachable(error, this.#target);
    });
    await this.#send(
      { text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' },
      { text: `SET LOCAL lock_timeout = ${lockMs}` },
      { text: `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}` },
    );
    try {
      await makeSteps((statements) => this.#session.send(statements.map(queryOf)));
      // A month whose rows came first would have no partition, and every later one would be created after reading them all.
      await createPartitionsWithin((queries) => this.#session.send(queries), nowMs);
      // No gateway may write while rows are copied: what it writes would be mixed with them.
      await this.#session.send([
        { text: `LOCK TABLE ${emptyTables.join(', ')} IN SHARE ROW EXCLUSIVE MODE` },
        // Usage is copied, too: otherwise what is copied of the records would be counted once more.
        { text: 'ALTER TABLE record_rows DISABLE TRIGGER usage_of_records' },
      ]);
    } catch (error) {
      if (error instanceof StorageError && error.reason === 'locked')
        throw new Error(`${this.name} is in use: stop every gateway on it, and run the command again`, {
          cause: error,
        });
      throw explainSteps(error);
    }
    for (const table of emptyTables) {
      const rows = await this.#rows(`SELECT 1 AS found FROM ${table} LIMIT 1`);
      if (rows.length > 0)
        throw new Error(
          `${this.name} is not empty: it has rows in ${table}. Name an empty database; nothing was changed`,
        );
    }
  }

  async #rows(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const [result] = await this.#send({ text });
    return (result?.rows ?? []) as Record<string, unknown>[];
  }

  async #send(...queries: readonly QueryConfig[]): Promise<readonly QueryResult[]> {
    try {
      return await this.#session.send(queries);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      const what =
        this.#session.fault === null ? `${this.name} refuses` : `the connection to ${this.name} was lost`;
      throw new StorageError(`${what}, so nothing was kept there: ${error.message}`, error.reason);
    }
  }
}

/** Errors of connections name the setting of a gateway, where the operator has given an argument. */
async function inArgument<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    throw new StorageError(error.message.replaceAll('storage.url', 'the URL'), error.reason);
  }
}
