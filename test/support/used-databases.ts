import { Client } from 'pg';
import { eventually } from './eventually.ts';

/**
 * All of a database that a test may have changed beside rows: tables, columns, rules, functions, triggers, settings. Rows of
 * statistics count, too: they are what plans are made by.
 */
const selectShape = `
  SELECT md5(concat_ws('|',
    (SELECT string_agg(concat_ws(' ', oid, relname, relnamespace, relkind, reloptions), ',' ORDER BY oid)
       FROM pg_class WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', attrelid, attname, atttypid, attnotnull, atthasdef), ',' ORDER BY attrelid, attnum)
       FROM pg_attribute WHERE attrelid >= 16384),
    (SELECT string_agg(concat_ws(' ', oid, proname, provolatile, proconfig, prosrc), ',' ORDER BY oid)
       FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', oid, tgname, tgenabled), ',' ORDER BY oid) FROM pg_trigger),
    (SELECT string_agg(concat_ws(' ', oid, conname), ',' ORDER BY oid) FROM pg_constraint WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', oid, nspname), ',' ORDER BY oid) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%'),
    (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
    (SELECT string_agg(concat_ws(' ', setrole, setconfig), ',') FROM pg_db_role_setting WHERE setdatabase = me.oid),
    me.datallowconn, me.datconnlimit)) AS shape
  FROM pg_database AS me WHERE datname = current_database()`;

/** The tables that have, or have had, rows. */
const selectFilled = `
  SELECT oid::regclass::text AS name FROM pg_class
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0`;

/** What a database was like before its first test. */
export interface Beginning {
  readonly shape: unknown;
  /** By a table's name, the statement that adds the rows that it had. */
  readonly rows: ReadonlyMap<string, string>;
}

/** Reads what a database is like before its first test. */
export async function readBeginning(url: string): Promise<Beginning> {
  return onDatabase(url, async (client) => {
    const shape = await shapeOf(client);
    const rows = new Map<string, string>();
    for (const name of await filledTables(client)) {
      const { rows: read } = await client.query<{ all: string }>(
        `SELECT coalesce(json_agg(t), '[]')::text AS all FROM ${name} t`,
      );
      const values = client.escapeLiteral(read[0]?.all ?? '[]');
      rows.set(
        name,
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, ${values})`,
      );
    }
    return { shape, rows };
  });
}

/** Empties a used database to what it was before its first test; `false` if more than rows was changed in it. */
export async function bringBack(url: string, { shape, rows }: Beginning): Promise<boolean> {
  return onDatabase(url, async (client) => {
    if ((await shapeOf(client)) !== shape) return false;
    const filled = await filledTables(client);
    if (filled.length === 0) return true;
    await client.query(
      [
        'BEGIN',
        // Without triggers, which would add rows of their own.
        'SET LOCAL session_replication_role = replica',
        `TRUNCATE ${[...new Set([...filled, ...rows.keys()])].join(', ')} RESTART IDENTITY CASCADE`,
        ...rows.values(),
        'COMMIT',
      ].join(';\n'),
    );
    return true;
  });
}

/**
 * Gives a database another name, so that nothing that still runs for its last test finds it again. Its connections are ended
 * as by a drop; the server itself would look for their end ten times a second.
 */
export async function rename(server: string, from: string, to: string): Promise<void> {
  await onDatabase(server, async (client) => {
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${from}'`;
    await eventually('its connections have ended', async () => (await client.query(end)).rows.length === 0);
    await client.query(`ALTER DATABASE ${from} RENAME TO ${to}`);
  });
}

async function shapeOf(client: Client): Promise<unknown> {
  return (await client.query<{ shape: string }>(selectShape)).rows[0]?.shape;
}

async function filledTables(client: Client): Promise<readonly string[]> {
  return (await client.query<{ name: string }>(selectFilled)).rows.map(({ name }) => name);
}

async function onDatabase<Result>(url: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
