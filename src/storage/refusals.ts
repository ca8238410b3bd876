import type { Refusals, RefusedByLimit, RefusedRequests } from '../domain/ports/refusals.ts';
import type { Engine, Statement } from './engine.ts';
import { listOf, lookUpRows, raw, sql } from './statements.ts';

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
export function createRefusals(engine: Pick<Engine, 'run' | 'lookUp' | 'read'>): Refusals {
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
    async ofDays({ fromMs, toMs, keyId }, most) {
      const ofKey = keyId === undefined ? raw('') : sql` AND key_id = ${keyId}`;
      const days = sql`FROM refusals WHERE day >= ${fromMs} AND day < ${toMs}${ofKey}`;
      const [limits = [], keys = []] = await engine.read([
        sql`SELECT limit_name, sum(requests) AS requests, count(DISTINCT key_id) AS keys ${days}
          GROUP BY limit_name ORDER BY 2 DESC, limit_name`,
        sql`SELECT limit_name, key_id, sum(requests) AS requests ${days}
          GROUP BY limit_name, key_id ORDER BY 3 DESC, limit_name, key_id LIMIT ${most}`,
      ]);
      return {
        byLimit: limits.map((row) => ({
          limit: String(row['limit_name']),
          requests: Number(row['requests']),
          keys: Number(row['keys']),
        })),
        byKey: keys.map((row) => ({
          limit: String(row['limit_name']),
          requests: Number(row['requests']),
          keyId: String(row['key_id']),
        })),
      };
    },
  };
}
