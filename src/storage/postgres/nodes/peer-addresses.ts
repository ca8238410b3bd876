import type { Engine } from '../../engine.ts';
import { lookUpRows, raw, sql } from '../../statements.ts';

/** How many other processes are asked at a time. */
const maxPeers = 64;

/** Reads where the other processes with a lease are reached, or the one that has it under an id. */
export async function readPeerAddresses(
  engine: Engine,
  own: string,
  owner: string | null,
): Promise<readonly string[]> {
  const isAsked = owner === null ? raw('TRUE') : sql`id = ${owner}`;
  const rows = await lookUpRows(
    engine,
    sql`SELECT address FROM owners WHERE address IS NOT NULL AND id <> ${own} AND ${isAsked} ORDER BY id LIMIT ${maxPeers}`,
  );
  return rows.map(({ address }) => String(address));
}
