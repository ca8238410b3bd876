import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { describeError } from '../../src/cli/describe-error.ts';
import { systemClock } from '../../src/composition/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { PostgresEngine, PostgresOptions } from '../../src/storage/postgres/engine.ts';

/** A server on which tests may make databases of their own. */
const server = process.env['TEXTGATE_TEST_POSTGRES'] ?? 'postgres://postgres@127.0.0.1:5432/postgres';

/** How long a connection may take on a busy machine, and a busy server to have room for it, in milliseconds. */
const connectMs = 20_000;
const patienceMs = 60_000;
/** The pause between two tries, in milliseconds. */
const lookMs = 200;

/** The codes of errors that mean that there is no server for tests: a refused connection, no such host or database, no access. */
const absences = /^(?:ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|3D000|28\w{3})$/;

/** Why tests on PostgreSQL are skipped here; `null` where they are run. */
export const postgresAbsence = await whyAbsent();

async function whyAbsent(): Promise<string | null> {
  for (const startMs = performance.now(); ; await wait(lookMs)) {
    try {
      await onServer('SELECT 1');
      return null;
    } catch (error) {
      // A server that is there, but busy or starting, is no reason for a skip, which is easily overlooked.
      const isAbsent = absences.test(String((error as { readonly code?: unknown }).code));
      const isLate = performance.now() - startMs > patienceMs;
      if (!isAbsent && !isLate) continue;
      if (!isAbsent || process.env['REQUIRE_SERVICES'] === '1') throw error;
      return `needs a PostgreSQL server: TEXTGATE_TEST_POSTGRES=postgres://user@host/database (${describeError(error)})`;
    }
  }
}

/** Runs a statement on the server's own database, or on another one. */
export async function onServer(sql: string, url = server): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectMs });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A database of a test's own. */
export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

/** Makes an empty database, on the server of all tests or on another one. */
export async function createDatabase(on = server): Promise<TestDatabase> {
  const name = `textgate_test_${randomUUID().replaceAll('-', '')}`;
  await onServer(`CREATE DATABASE ${name}`, on);
  const url = new URL(on);
  url.pathname = name;
  return {
    name,
    url: url.href,
    drop: async () => void (await onServer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, on)),
  };
}

/** An engine on a database of its own, which is dropped when the engine is closed. */
export async function openPostgres(
  options: Partial<PostgresOptions> = {},
): Promise<PostgresEngine & { readonly database: TestDatabase }> {
  const database = await createDatabase();
  const engine = createPostgresEngine({ url: database.url, clock: systemClock, ...options });
  await engine.ready;
  return Object.assign(Object.create(engine) as PostgresEngine, {
    database,
    async close() {
      await engine.close();
      await database.drop();
    },
  });
}
