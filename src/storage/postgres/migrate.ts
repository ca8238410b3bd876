import type { Statement } from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { createMigrationTable, findPending } from '../migration.ts';
import type { KeptConnection } from './connection.ts';
import { functionOf } from './fixed-functions.ts';
import { migrations } from './migrations.ts';
import { queryOf } from './queries.ts';

/** Nodes that start together make the steps one after the other. */
const migrationLock = 7_483_912;

/** How long a step may take, and wait for other nodes, in milliseconds. */
const stepMs = 600_000;

/**
 * Brings the schema up to date and creates the functions of this version, in one transaction. Nothing else may be sent on
 * the connection until it is done.
 */
export async function migrate(connection: KeptConnection): Promise<void> {
  const send = async (...statements: readonly Statement[]) => connection.send(statements.map(queryOf));
  try {
    await send(
      say('BEGIN'),
      say(`SET LOCAL statement_timeout = ${stepMs}`),
      say(`SET LOCAL lock_timeout = ${stepMs}`),
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
    throw error;
  }
}

function say(sql: string, ...values: Statement['values']): Statement {
  return { sql, values };
}
