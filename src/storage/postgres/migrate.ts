import type { QueryResult } from 'pg';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { Statement } from '../engine.ts';
import { createMigrationTable, findPending, runsWithOf } from '../migration.ts';
import type { MadeMigration, Migration } from '../migration.ts';
import { raw, sql } from '../statements.ts';
import type { ServerLimits } from './connection/client-config.ts';
import type { KeptConnection } from './connection/connection.ts';
import { adviceOn, repeatUnit } from './connection/failures.ts';
import { queryOf } from './connection/queries.ts';
import { quotaFunctions } from './nodes/quota-store.ts';
import { migrations } from './schema.ts';
import { beginFunctions } from './slots/begin-functions.ts';
import { slotFunctions } from './slots/slot-searches.ts';
import { unitFunctions } from './unit-functions.ts';

/** Nodes that start together make the steps one after the other. */
const migrationLock = 7_483_912;

/** How long a step may take, and wait for other nodes, in milliseconds. */
const stepMs = 600_000;

/** The limits of the connection on which the steps are made. */
export const migrationLimits: ServerLimits = { statementMs: stepMs, lockMs: stepMs };

/**
 * Locks the tables that steps change and requests write, in the order in which requests lock them: otherwise each step that
 * takes a while would have settlements of other nodes wait for one of them with a lock of another one, in a deadlock.
 */
const lockChanged: Statement = sql`LOCK TABLE api_keys, accounts, open_rows, record_rows IN ACCESS EXCLUSIVE MODE`;

/** Sends statements one behind the other. */
type Send = (statements: readonly Statement[]) => Promise<readonly QueryResult[]>;

/**
 * Brings the schema up to date and creates the functions of this version, in one transaction. Nothing else may be sent on
 * the connection until it is done. It is made again after a deadlock: nodes that run meanwhile lock tables in an order of theirs.
 */
export async function migrate(connection: KeptConnection, steps = migrations): Promise<void> {
  const send: Send = async (statements) => connection.send(statements.map(queryOf));
  const makeAll = async (): Promise<void> => {
    try {
      await send([raw('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE')]);
      await makeSteps(send, steps);
      await send([raw('COMMIT')]);
    } catch (error) {
      await send([raw('ROLLBACK')]).catch(() => {});
      throw error;
    }
  };
  try {
    await repeatUnit(makeAll);
  } catch (error) {
    throw explainSteps(error);
  }
}

/**
 * Makes the steps that the schema lacks, inside a transaction. A database may have more of them than this version, as while
 * nodes are replaced by newer ones: they say which versions they leave running.
 */
export async function makeSteps(send: Send, steps: readonly Migration[] = migrations): Promise<void> {
  const createTable = createMigrationTable(', runs_with INTEGER NOT NULL DEFAULT 0');
  await send([raw(`SELECT pg_advisory_xact_lock(${migrationLock})`), raw(createTable)]);
  const [found] = await send([raw('SELECT number, checksum, runs_with AS "runsWith" FROM migrations')]);
  const rows = (found?.rows ?? []) as readonly (MadeMigration & { readonly number: number })[];
  const pending = findPending(steps, new Map(rows.map((made) => [made.number, made])));
  if (rows.length > 0 && pending.length > 0) await send([lockChanged]);
  for (const step of pending)
    await send([
      raw(step.sql),
      sql`INSERT INTO migrations VALUES (${step.number}, ${step.name}, ${step.checksum}, ${runsWithOf(step)})`,
    ]);
  const functions = [
    ...unitFunctions.values(),
    ...slotFunctions,
    ...beginFunctions.values(),
    ...quotaFunctions,
  ];
  await send(functions.map(({ create }) => raw(create)));
}

/** The error of a schema that can't be brought up to date, for the operator. */
export function explainSteps(error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  const { message, reason } = error;
  const advice = adviceOn(error, { hasPassword: true });
  return new StorageError(`the tables of the database can't be created: ${message}${advice}`, reason);
}
