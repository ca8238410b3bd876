import { Socket } from 'node:net';
import type { Client } from 'pg';
import type { Clock } from '../../../domain/ports/clock.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import { createClient } from './client-config.ts';
import type { ConnectionTarget } from './connection-target.ts';
import { SharedSessionError } from './failures.ts';

/** How long the check may take, in milliseconds. */
const checkMs = 5_000;

/** How often it is tried: a pooler that picks sessions at random may give each connection its own one again. */
const rounds = 8;

/** The checks that are under way: connections that are opened together need one. */
const underWay = new WeakMap<ConnectionTarget, Promise<void>>();

/**
 * Rejects where a pooler gives each transaction any of its sessions. The settings of a connection would then hold for
 * the client that gets that session next, and not here: statements would have no time limit, and what follows a failed
 * `BEGIN` would be committed. It is found out before any setting is made.
 */
export function requireOwnSession(target: ConnectionTarget, clock: Clock): Promise<void> {
  const check = underWay.get(target) ?? checkPair(target, clock).finally(() => underWay.delete(target));
  underWay.set(target, check);
  return check;
}

/** Two connections whose transactions overlap: in the opposite order afterwards, no pool gives both of them the same again. */
async function checkPair(target: ConnectionTarget, clock: Clock): Promise<void> {
  const clients = [openPlain(target), openPlain(target)] as const;
  let isLate = false;
  const cancel = clock.schedule(checkMs, () => {
    isLate = true;
    for (const client of clients) client.connection.stream.destroy();
  });
  try {
    for (const client of clients) {
      await client.connect();
      // Poolers of the kind of RDS Proxy keep a session for a connection from its first setting on, as those of ours are.
      await client.query("SET textgate.session = 'own'");
    }
    for (let round = 0; round < rounds; round++) await compare(...clients);
  } catch (error) {
    if (isLate)
      throw new StorageError('a pooler has no session free: give its pool 17 for each gateway', 'slow');
    // PgBouncer in the mode that has no transactions at all.
    throw error instanceof Error && /statement pooling/.test(error.message)
      ? new SharedSessionError()
      : error;
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
    cancel();
  }
}

function openPlain(target: ConnectionTarget): Client {
  const client = createClient(target, new Socket());
  // Its queries are rejected, too.
  client.on('error', () => {});
  return client;
}

async function compare(first: Client, second: Client): Promise<void> {
  const before = [await beginIn(first), await beginIn(second)];
  await first.query('COMMIT');
  await second.query('COMMIT');
  const after = [await sessionOf(second), await sessionOf(first)].toReversed();
  if (before.some((session, at) => session !== after[at])) throw new SharedSessionError();
}

async function beginIn(client: Client): Promise<number> {
  await client.query('BEGIN');
  return sessionOf(client);
}

async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}
