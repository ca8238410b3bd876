import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Statement } from '../../src/storage/engine.ts';
import type { PostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createSharedChanges } from '../../src/storage/postgres/nodes/shared-changes.ts';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** How many owners have rows, and how many rows each of them has. */
const [owners, rowsOfEach] = [1_000, 20];

/** A node among many, whose rows are few of those of all nodes; the tables have no statistics, as new ones. */
describe.skipIf(postgresAbsence !== null)(`what belongs to one node in PostgreSQL${absent}`, () => {
  let engine: PostgresEngine;
  beforeAll(async () => {
    engine = await openPostgres();
    const all = `FROM generate_series(0, ${owners - 1}) AS owner, generate_series(1, ${rowsOfEach}) AS number`;
    const id = `owner || '-' || number`;
    const named = `'owner-' || owner`;
    await engine.run(
      [
        `INSERT INTO owners (id, since, renewed_at) SELECT ${named}, 0, 0 FROM generate_series(0, ${owners - 1}) AS owner`,
        `INSERT INTO slots (request_id, key_id, owner) SELECT ${id}, 'key-' || ${id}, ${named} ${all}`,
        `INSERT INTO waiting_requests (key_id, ticket, request_id, owner, concurrency, requests_per_minute)
         SELECT 'key-' || ${id}, 1, ${id}, ${named}, 1, 1 ${all}`,
        `INSERT INTO ended_waits (request_id, owner, verdict, in_flight, remaining_starts, reset_ms)
         SELECT ${id}, ${named}, 'granted', 1, 1, 1 ${all}`,
        `INSERT INTO cancellations (request_id, owner) SELECT ${id}, ${named} ${all}`,
      ].map((sql) => ({ sql, values: [] })),
    );
  });
  afterAll(() => engine.close());

  /** Which scans some statements made, by the counts that their connection keeps until it hands them in. */
  async function scansOf(
    statements: readonly Statement[],
    relation: string,
    ask: 'read' | 'run',
  ): Promise<unknown> {
    const sql = 'SELECT pg_stat_get_xact_numscans(CAST(CAST(? AS TEXT) AS REGCLASS)) AS count';
    const counted = { sql, values: [relation] };
    const rows = (await engine[ask]([counted, ...statements, counted])).map(([row]) =>
      Number(row?.['count']),
    );
    return (rows.at(-1) ?? 0) - (rows[0] ?? 0);
  }

  /** The engine, with what is asked of it as statements. */
  function recording() {
    const asked: Statement[] = [];
    const recorder: PostgresEngine = {
      ...engine,
      read: (statements) => (asked.push(...statements), engine.read(statements)),
      lookUp: (statements) => (asked.push(...statements), engine.lookUp(statements)),
      callFunction: (called, _spreadBy, values) => {
        const places = values.map(() => '?').join(', ');
        asked.push({ sql: `SELECT * FROM ${called.called}(${places})`, values });
        return Promise.resolve([]);
      },
    };
    return { asked, recorder };
  }

  test.each([
    ['slots_by_owner', 'slots', 'held'],
    ['waiting_requests_by_owner', 'waiting_requests', 'held'],
    ['ended_waits_by_owner', 'ended_waits', 'endedWaits'],
    ['cancellations_by_owner', 'cancellations', 'find'],
  ] as const)('is found by the index %s, and never by reading all of %s', async (index, table, step) => {
    const { asked, recorder } = recording();
    const owner = (): string => 'owner-7';
    if (step === 'find')
      await createSharedChanges(recorder, { owner, name: 'node', address: () => null }).find();
    else await createSlotStore(recorder, owner)[step]();
    expect(asked).toHaveLength(1);
    const ask = step === 'endedWaits' ? 'run' : 'read';
    expect(await scansOf(asked, index, ask)).toBe(1);
    expect(await scansOf(asked, table, ask)).toBe(0);
  });
});
