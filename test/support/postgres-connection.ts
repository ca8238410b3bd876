import { onTestFinished, vi } from 'vitest';
import { readTarget } from '../../src/storage/postgres/connection/connection-target.ts';
import { KeptConnection } from '../../src/storage/postgres/connection/connection.ts';
import type { ConnectionOptions } from '../../src/storage/postgres/connection/client-config.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';

/** A connection with a clock of its own, which is closed at the end of the test. */
export function keep(
  url: string,
  options: Partial<ConnectionOptions> = {},
): { readonly connection: KeptConnection; readonly clock: FakeClock } {
  const clock = createFakeClock();
  const connection = new KeptConnection({
    target: readTarget(url),
    limits: { statementMs: 5_000, lockMs: 4_000 },
    callsFunctions: true,
    clock,
    ...options,
  });
  onTestFinished(() => connection.close());
  return { connection, clock };
}

/** What pg and libpq read from the environment, each with a value that leads elsewhere. */
export function stubEnvironment(): void {
  const elsewhere = {
    PGHOST: '203.0.113.1',
    PGPORT: '1',
    PGUSER: 'other',
    PGPASSWORD: 'of the environment',
    PGDATABASE: 'other',
    PGOPTIONS: '-c search_path=other -c default_transaction_read_only=on',
    PGAPPNAME: 'other',
    PGSSLMODE: 'require',
    PGSSLNEGOTIATION: 'direct',
    PGCLIENT_ENCODING: 'latin1',
    PGCONNECT_TIMEOUT: '1',
    PGSERVICE: 'other',
  };
  for (const [name, value] of Object.entries(elsewhere)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}
