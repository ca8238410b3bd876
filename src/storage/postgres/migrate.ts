import { StorageError } from '../../domain/storage-refusal.ts';
import type { Statement } from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { createMigrationTable, findPending } from '../migration.ts';
import type { KeptConnection } from './connection.ts';
import { adviceOn } from './connection-advice.ts';
import { functionOf } from './fixed-functions.ts';
import { migrations } from './migrations.ts';
import { queryOf } from './queries.ts';
import type { ServerLimits } from './client-config.ts';

/** Nodes that start together make the steps one after the other. */
const migrationLock = 7_483_912;

/** How long a step may take, and wait for other nodes, in milliseconds. */
const stepMs = 600_000;

/** The limits of the connection on which the steps are made. */
export const migrationLimits: ServerLimits = { statementMs: stepMs, lockMs: stepMs };

/**
 * Brings the schema up to date and creates the functions of this version, in one transaction. Nothing else may be sent on
 * the connection until it is done.
 */
export async function migrate(connection: KeptConnection): Promise<void> {
  const send = async (...statements: readonly Statement[]) => connection.send(statements.map(queryOf));
  try {
    await send(
      say('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'),
      say(`SELECT pg_advisory_xact_lock(${migrationLock})`),
      say(createMigrationTable),
    );
    const [found] = await send(say('SELECT number, checksum FROM migrations'));
    const rows = (found?.rows ?? []) as readonly { readonly number: number; readonly checksum: string }[];
    const pending = findPending(migrations, new Map(rows.map(({ number, checksum }) => [number, checksum])));
    for (const { number, name, checksum, statements } of pending)
      await send(
        ...statements.map((sql) => say(sql)),
        say('INSERT INTO migrations VALUES (?, ?, ?)', number, name, checksum),
      );
    await send(...Object.values(fixedUnits).map((unit) => say(functionOf(unit).create)), say('COMMIT'));
  } catch (error) {
    await send(say('ROLLBACK')).catch(() => {});
    throw explain(error);
  }
}

function explain(error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  const { message, reason } = error;
  const advice = adviceOn(error, { hasPassword: true });
  return new StorageError(`the tables of the database can't be created: ${message}${advice}`, reason);
}

function say(sql: string, ...values: Statement['values']): Statement {
  return { sql, values };
}
