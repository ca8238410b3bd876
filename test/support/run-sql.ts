import { Client } from 'pg';

/** How long a connection may take on a busy machine, in milliseconds. */
const connectMs = 20_000;

/** Runs a statement on a database, over a connection of its own. */
export async function runSql(sql: string, url: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: connectMs });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
