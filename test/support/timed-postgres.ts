import { DatabasePool } from './test-postgres.ts';
import type { OwnPostgres } from './test-postgres.ts';
import type { TimedDatabase } from './timed-sqlite.ts';

/** Databases whose clock is a row. */
const timedDatabases = new DatabasePool(async (engine) => {
  const run = async (sql: string, ...values: readonly number[]) => engine.run([{ sql, values }]);
  await run('CREATE TABLE test_time (ms BIGINT NOT NULL)');
  await run('INSERT INTO test_time VALUES (?)', 1_800_000_000_000);
  await run(
    `CREATE OR REPLACE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS 'SELECT ms FROM test_time'`,
  );
});

/** PostgreSQL: its clock is a row, which all connections read. */
export async function openTimedPostgres(): Promise<TimedDatabase<OwnPostgres>> {
  const engine = await timedDatabases.open();
  return {
    engine,
    move: async (byMs) =>
      void (await engine.run([{ sql: 'UPDATE test_time SET ms = ms + ?', values: [byMs] }])),
  };
}
