import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { processTree, readUsage } from '../compare/process-usage.ts';

/** The counts of a server at a moment. */
export interface ServerCounts {
  /** CPU time of each of its processes, in milliseconds; none where it runs on another machine. */
  readonly cpuMs: ReadonlyMap<number, number>;
  /** Transactions that wrote something, and the length of its log, in bytes: exact at once, unlike its statistics. */
  readonly transactions: number;
  readonly walBytes: number;
}

/** What a server did in a time: all of it, whichever databases it was for. */
export interface ServerUse {
  /** CPU time of its processes, in milliseconds; NaN where they are not on this machine. */
  readonly cpuMs: number;
  readonly transactions: number;
  readonly walBytes: number;
}

/** The PostgreSQL server of a subject's database, of which usage is read. */
export class PostgresServer {
  readonly #client: Client;
  /** The process that all others descend from; null on another machine. */
  readonly #pid: number | null;

  private constructor(client: Client, pid: number | null) {
    this.#client = client;
    this.#pid = pid;
  }

  static async open(url: string): Promise<PostgresServer> {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
    return new PostgresServer(client, parentOf(rows[0]?.pid ?? 0));
  }

  async read(): Promise<ServerCounts> {
    const { rows } = await this.#client.query<{ readonly transactions: string; readonly wal: string }>(
      `SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS transactions,
         (pg_current_wal_insert_lsn() - '0/0')::text AS wal`,
    );
    const pids = this.#pid === null ? [] : processTree(this.#pid);
    return {
      cpuMs: new Map(pids.map((pid) => [pid, readUsage([pid]).cpuMs])),
      transactions: Number(rows[0]?.transactions),
      walBytes: Number(rows[0]?.wal),
    };
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/** What was done between two moments. The time of processes that have ended in between is missing. */
export function serverUse(before: ServerCounts, after: ServerCounts): ServerUse {
  const used = [...after.cpuMs].map(([pid, cpuMs]) => cpuMs - (before.cpuMs.get(pid) ?? 0));
  return {
    cpuMs: used.length === 0 ? Number.NaN : used.reduce((sum, each) => sum + each, 0),
    transactions: after.transactions - before.transactions,
    walBytes: after.walBytes - before.walBytes,
  };
}

/** The parent of a server's process; null where no such process is here, as when the server is on another machine. */
function parentOf(pid: number): number | null {
  try {
    const [, name, parent] = /^\d+ \((.*)\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return name === 'postgres' ? Number(parent) : null;
  } catch {
    return null;
  }
}
