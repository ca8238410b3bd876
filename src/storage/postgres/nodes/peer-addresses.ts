import type { Engine } from '../../engine.ts';
import { lookUpRows, sql } from '../../statements.ts';

/** How many other processes are asked at a time. */
const maxPeers = 64;

/** Reads where the other processes with a lease are reached, by the ids under which they have it. */
export async function readPeerAddresses(engine: Engine, owner: string): Promise<ReadonlyMap<string, string>> {
  const rows = await lookUpRows(
    engine,
    sql`SELECT id, address FROM owners WHERE address IS NOT NULL AND id <> ${owner}
      ORDER BY renewed_at DESC LIMIT ${maxPeers}`,
  );
  return new Map(rows.map(({ id, address }) => [String(id), String(address)]));
}
