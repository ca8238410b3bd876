import type { Socket } from 'node:net';
import { Client } from 'pg';
import type { ClientConfig } from 'pg';
import type { Clock } from '../../../domain/ports/clock.ts';
import type { ConnectionTarget } from './connection-target.ts';
import { valueTypes } from './queries.ts';

/** How long a connection may be idle before either side looks whether the other one is there, in seconds. */
const keepAliveSeconds = 10;

/**
 * How long the server keeps a transaction whose next statement does not come, and a connection whose packets are not
 * acknowledged, in milliseconds. All nodes wait for such a transaction: it has the lock of the units.
 */
const abandonedMs = 10_000;

/** How long the server may work on a statement, and wait in it for a lock, in milliseconds. */
export interface ServerLimits {
  readonly statementMs: number;
  readonly lockMs: number;
}

export interface ConnectionOptions {
  readonly target: ConnectionTarget;
  readonly limits: ServerLimits;
  /**
   * Whether functions are called on it, which write. On any other the server refuses statements that write, but for
   * transactions that begin with `READ WRITE`.
   */
  readonly callsFunctions: boolean;
  readonly clock: Clock;
}

/** What pg has besides the types that it is published with. */
interface Untyped {
  /** The session that the other side names in its greeting. */
  readonly processID: number | null;
  readonly connectionParameters: object;
}

/** A client over a socket. Poolers refuse settings in the start packet: they are made by `settingsOf`. */
export function createClient(target: ConnectionTarget, socket: Socket): Client & Untyped {
  const config: ClientConfig & { readonly sslnegotiation: string } = {
    ...target.config,
    stream: () => socket,
    pipeline: true,
    types: valueTypes,
    application_name: 'textgate',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveSeconds * 1_000,
    // Otherwise pg reads `PGSSLNEGOTIATION`, and `direct` without TLS is an error.
    sslnegotiation: 'postgres',
  };
  const client = new Client(config) as Client & Untyped;
  // pg reads `PGOPTIONS` and `PGREPLICATION`, whatever it is given.
  Object.assign(client.connectionParameters, { options: '', replication: '' });
  return client;
}

/**
 * Settings of connections that call functions, which find rows by their keys: their statements are planned once, and not anew
 * for every call, since a plan for partitions takes longer than the work itself; and by an index, also where a table is empty
 * so far. As settings of the functions they would take 10 µs of each call.
 */
const searchByIndex = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' };

/** The expression of SQL that makes the settings of a connection. */
export function settingsOf({
  limits,
  callsFunctions,
}: Pick<ConnectionOptions, 'limits' | 'callsFunctions'>): string {
  const settings = {
    statement_timeout: limits.statementMs,
    lock_timeout: limits.lockMs,
    idle_in_transaction_session_timeout: abandonedMs,
    // Whatever the server's own default is: at another level units would fail that wait for each other.
    default_transaction_isolation: 'read committed',
    // Compiling a statement takes longer than any of them runs; and a wrong estimate would have every request wait for it.
    jit: 'off',
    ...(callsFunctions ? searchByIndex : { default_transaction_read_only: 'on' }),
    tcp_keepalives_idle: keepAliveSeconds,
    tcp_keepalives_interval: keepAliveSeconds / 5,
    tcp_keepalives_count: 5,
    tcp_user_timeout: abandonedMs,
  };
  const made = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  return `ARRAY[${made.join(', ')}]`;
}
