import { postgresPrograms, startPostgresServer } from './postgres-server.ts';
import type { PostgresServer } from './postgres-server.ts';
import { isOnlyListed } from './services.ts';

let server: PostgresServer | null = null;

/**
 * Before the first test, starts the PostgreSQL server of a whole run, where its programs are installed and no other one is
 * named: tests that run at the same time open more connections than a server with its default settings takes, and one that
 * need not outlive the machine is quicker. Vitest calls it by its name.
 */
export async function setup(): Promise<void> {
  const isNamed = process.env['TEXTGATE_TEST_POSTGRES'] !== undefined;
  if (isNamed || isOnlyListed || postgresPrograms === null) return;
  server = await startPostgresServer();
  process.env['TEXTGATE_TEST_POSTGRES'] = server.url();
}

/** Ends that server after the last test. */
export async function teardown(): Promise<void> {
  await server?.remove();
}
