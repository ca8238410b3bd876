import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { replacePlaceholders } from '../../src/storage/engine.ts';
import type { FixedUnit } from '../../src/storage/engine.ts';
import { fixedUnits } from '../../src/storage/fixed-units.ts';
import { settingsOf } from '../../src/storage/postgres/connection/client-config.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/**
 * Above this estimate the server compiles a statement before it runs it (`jit_above_cost`), which takes some hundred
 * milliseconds every time. A table that a function has to read whole is estimated far above it.
 */
const compiledAbove = 100_000;

interface Plan {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: { readonly 'Total Cost': number } }];
}

/** The statements of a unit, with the values of its call and of its decision as parameters, and their types. */
function statementsOf({ takes, decided, locks, preparations, decisions, changes }: FixedUnit) {
  const [names, columns] = [Object.keys(takes), Object.keys(decided)];
  const lockings = locks.map(({ table, where }) => `SELECT 1 FROM ${table} WHERE ${where} FOR UPDATE`);
  const all = [...lockings, ...preparations, ...decisions, ...changes];
  return {
    types: [...Object.values(takes), ...Object.values(decided)],
    statements: all.map((sql) =>
      replacePlaceholders(sql, {
        value: (name) => `$${names.indexOf(name) + 1}`,
        decided: (name) => `$${names.length + columns.indexOf(name) + 1}`,
      }),
    ),
  };
}

/** A database whose tables are empty and without statistics, as a new one. */
describe.skipIf(postgresAbsence !== null)(`the statements of requests in PostgreSQL${absent}`, () => {
  let engine: PostgresEngine & { readonly database: TestDatabase };
  let client: Client;
  beforeAll(async () => {
    engine = await openPostgres();
    client = new Client({ connectionString: engine.database.url });
    await client.connect();
    // As the connections that call functions.
    await client.query(
      `SELECT ${settingsOf({ limits: { statementMs: 5_000, lockMs: 4_000 }, callsFunctions: true })}`,
    );
  });
  afterAll(async () => {
    await client.end();
    await engine.close();
  });

  async function costOf(types: readonly string[], sql: string): Promise<number> {
    await client.query(`PREPARE asked (${types.join(', ')}) AS ${sql}`);
    const nulls = types.map(() => 'NULL').join(', ');
    const { rows } = await client.query<Plan>(`EXPLAIN (FORMAT JSON) EXECUTE asked (${nulls})`);
    await client.query('DEALLOCATE asked');
    return rows[0]?.['QUERY PLAN'][0].Plan['Total Cost'] ?? Number.NaN;
  }

  test.each(Object.values(fixedUnits).filter(({ takes }) => Object.keys(takes).length > 0))(
    'of $name are none that the server compiles before it runs them: all tables are searched by an index',
    async (unit) => {
      const { types, statements } = statementsOf(unit);
      for (const sql of statements)
        expect([sql, await costOf(types, sql)]).toEqual([
          sql,
          expect.toSatisfy((cost) => cost < compiledAbove),
        ]);
    },
  );

  test('are found where they are compiled', async () => {
    expect(await costOf(['text'], 'SELECT removed_before FROM record_removals')).toBeGreaterThan(
      compiledAbove,
    );
  });

  test('run on connections that compile none', async () => {
    const [[row] = []] = await engine.read([{ sql: `SELECT current_setting('jit') AS jit`, values: [] }]);
    expect(row).toEqual({ jit: 'off' });
  });
});
