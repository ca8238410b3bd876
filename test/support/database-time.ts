import type { Engine } from '../../src/storage/engine.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createFakeClock } from './fake-clock.ts';
import { openTestEngine } from './test-engine.ts';
import { openPostgres } from './test-postgres.ts';
import type { TestDatabase } from './test-postgres.ts';

/** A database whose clock stands still until the test moves it, forwards or back. */
export interface TimedDatabase<Opened extends Engine = Engine> {
  readonly engine: Opened;
  readonly move: (byMs: number) => Promise<void>;
}

/** SQLite: its clock is that of its engine. */
export async function openTimedSqlite(path: string): Promise<TimedDatabase> {
  const clock = createFakeClock();
  let movedMs = 0;
  const engine = openTestEngine(path, { clock: { ...clock, now: () => clock.now() + movedMs } });
  await engine.ready;
  return { engine, move: async (byMs) => void (movedMs += byMs) };
}

/** PostgreSQL: its clock is a row, which all connections read. */
export async function openTimedPostgres(): Promise<
  TimedDatabase<PostgresEngine & { readonly database: TestDatabase }>
> {
  const engine = await openPostgres();
  const run = async (sql: string, ...values: readonly number[]) => engine.run([{ sql, values }]);
  await run('CREATE TABLE test_time (ms BIGINT NOT NULL)');
  await run('INSERT INTO test_time VALUES (?)', 1_800_000_000_000);
  await run(
    `CREATE OR REPLACE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS 'SELECT ms FROM test_time'`,
  );
  return { engine, move: async (byMs) => void (await run('UPDATE test_time SET ms = ms + ?', byMs)) };
}
