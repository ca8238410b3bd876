import { keyOf } from '../numbered-upstream.ts';
import type { Cluster, ClusterKey } from './cluster.ts';

/** The window of the limit of starts, in milliseconds. */
const windowMs = 60_000;

/** By how much a start may take longer to reach the upstream than another one, in milliseconds, on a busy machine. */
const dispatchJitterMs = 1_500;

/** Has the database keep every start that it allows, with its time: its own table forgets them after a window. */
export async function keepStarts(cluster: Cluster): Promise<void> {
  await cluster.sql('CREATE TABLE kept_starts (LIKE starts)');
  await cluster.sql(
    `CREATE FUNCTION keep_start() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN INSERT INTO kept_starts SELECT NEW.*; RETURN NULL; END $$`,
  );
  await cluster.sql(
    'CREATE TRIGGER keep_starts AFTER INSERT ON starts FOR EACH ROW EXECUTE FUNCTION keep_start()',
  );
}

/** Where more starts than a key's limit were within a window: exactly by the database, and by the upstream's arrivals. */
export async function checkStarts(cluster: Cluster, key: ClusterKey): Promise<readonly string[]> {
  const kept = await cluster.sql(`SELECT at FROM kept_starts WHERE key_id = '${key.id}' ORDER BY at`);
  const arrivals = [...cluster.upstream.served]
    .filter(([number]) => keyOf(number) === key.number)
    .map(([, { arrivedMs }]) => arrivedMs);
  return [
    ...crowded(
      'by the database',
      kept.map(({ at }) => Number(at)),
      key,
      windowMs,
    ),
    ...crowded('at the upstream', arrivals, key, windowMs - dispatchJitterMs),
  ];
}

function crowded(
  where: string,
  times: readonly number[],
  { number, requestsPerMinute }: ClusterKey,
  leastMs: number,
): readonly string[] {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted.flatMap((time, index) => {
    const next = sorted[index + requestsPerMinute];
    if (next === undefined || next - time >= leastMs) return [];
    return [`key ${number}: ${requestsPerMinute + 1} starts within ${Math.round(next - time)} ms ${where}`];
  });
}
