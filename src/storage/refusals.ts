import type { Refusals, RefusedByLimit, RefusedKey, RefusedRequests } from '../domain/ports/refusals.ts';
import type { Engine, Statement } from './engine.ts';
import { listOf, lookUpRows, sql } from './statements.ts';

/** How long the sums of a day are kept, in milliseconds. */
const keptMs = 32 * 86_400_000;

/** In one order for all nodes, so that none waits for another one that waits for it. */
function addStatement(refused: readonly RefusedRequests[]): Statement {
  const rows = refused
    .map(({ dayMs, keyId, limit, requests }) => [dayMs, keyId, limit, requests] as const)
    .toSorted((one, other) => (one.join(' ') < other.join(' ') ? -1 : 1));
  const places: Statement = { sql: rows.map(() => '(?, ?, ?, ?)').join(', '), values: rows.flat() };
  return sql`INSERT INTO refusals (day, key_id, limit_name, requests) VALUES ${places}
    ON CONFLICT (day, key_id, limit_name) DO UPDATE SET requests = refusals.requests + excluded.requests`;
}

/** Keeps the sums of refused requests, over any engine. */
export function createRefusals(engine: Pick<Engine, 'run' | 'lookUp'>): Refusals {
  return {
    async add(refused) {
      if (refused.length === 0) return;
      const oldMs = Math.max(...refused.map(({ dayMs }) => dayMs)) - keptMs;
      await engine.run([addStatement(refused), sql`DELETE FROM refusals WHERE day < ${oldMs}`]);
    },
    async ofDay(keyIds, dayMs) {
      const rows = await lookUpRows(
        engine,
        sql`SELECT key_id, limit_name, requests FROM refusals
          WHERE day = ${dayMs} AND key_id IN (${listOf(keyIds)}) ORDER BY key_id, limit_name`,
      );
      const found = new Map<string, RefusedByLimit>();
      for (const row of rows) {
        const keyId = String(row['key_id']);
        const known = found.get(keyId);
        found.set(keyId, { ...known, [String(row['limit_name'])]: Number(row['requests']) });
      }
      return found;
    },
    async most(fromMs, toMs, limit) {
      const rows = await lookUpRows(
        engine,
        sql`SELECT key_id, limit_name, sum(requests) AS requests FROM refusals
          WHERE day >= ${fromMs} AND day < ${toMs} AND key_id IN (
            SELECT key_id FROM refusals WHERE day >= ${fromMs} AND day < ${toMs}
            GROUP BY key_id ORDER BY sum(requests) DESC, key_id LIMIT ${limit})
          GROUP BY key_id, limit_name ORDER BY key_id, limit_name`,
      );
      const found = new Map<string, RefusedKey>();
      for (const row of rows) {
        const [keyId, requests] = [String(row['key_id']), Number(row['requests'])];
        const known = found.get(keyId) ?? { keyId, requests: 0, byLimit: {} };
        const byLimit = { ...known.byLimit, [String(row['limit_name'])]: requests };
        found.set(keyId, { keyId, requests: known.requests + requests, byLimit });
      }
      return [...found.values()].toSorted((one, other) => other.requests - one.requests);
    },
  };
}
