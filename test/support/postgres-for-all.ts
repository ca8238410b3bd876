import { postgresPrograms, startPostgresServer } from './postgres-server.ts';
import { isOnlyListed } from './services.ts';

/**
 * Before the first test, starts the PostgreSQL server of a whole run, where its programs are installed and no other one is
 * named: tests that run at the same time open more connections than a server with its default settings takes, and one that
 * need not outlive the machine is quicker. Vitest calls what it returns at the end of the run.
 */
export default async function startPostgresForAll(): Promise<(() => Promise<void>) | undefined> {
  const isNeeded = process.env['TEXTGATE_TEST_POSTGRES'] === undefined;
  if (!isNeeded || isOnlyListed || postgresPrograms === null) return undefined;
  const server = await startPostgresServer();
  process.env['TEXTGATE_TEST_POSTGRES'] = server.url();
  return () => server.remove();
}
