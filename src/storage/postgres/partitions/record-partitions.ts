import type { QueryConfig, QueryResult } from 'pg';

/** How many months ahead partitions are created: nodes that can't create any for four weeks have the next one still. */
const monthsAhead = 1;

/** Nodes create and drop partitions one after the other. */
export const partitionLock = 7_483_931;

/** How long a creation or a drop waits for a lock, in milliseconds. Meanwhile every statement on the records waits behind it. */
export const lockWaitMs = 500;

/** How many rows of a month are moved to its partition; a month of which more were written before it has none. */
const maxMovedRows = 1_000;

/** Sends queries one behind the other on one connection. */
export type Send = (queries: readonly QueryConfig[]) => Promise<readonly QueryResult[]>;

/** The partition of a month: its ids are from the first one to the one before the end. */
interface Partition {
  readonly name: string;
  readonly first: string;
  readonly end: string;
  /** When the month ends, in milliseconds since 1970. */
  readonly endMs: number;
}

/**
 * Creates the partitions of this month and the next one, where they are missing, each in a transaction of its own. Rows of
 * a month without one are in the default partition, so that none is ever refused. Rejects with the first fault, once every
 * month was tried.
 */
export async function createRecordPartitions(send: Send, nowMs: number): Promise<void> {
  const months = partitionsAt(nowMs);
  const [found] = await send([
    {
      text: 'SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL',
      values: [months.map(({ name }) => name)],
    },
  ]);
  const rows = (found?.rows ?? []) as readonly { readonly name: string }[];
  const existing = new Set(rows.map(({ name }) => name));
  const faults: unknown[] = [];
  for (const month of months)
    if (!existing.has(month.name))
      await send([
        { text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' },
        { text: `SET LOCAL lock_timeout = ${lockWaitMs}` },
        ...creationOf(month),
        { text: 'COMMIT' },
      ]).catch((error: unknown) => faults.push(error));
  if (faults.length > 0) throw faults[0];
}

/** Creates the same partitions inside a transaction, so that rows which it copies are in those of their months. */
export async function createPartitionsWithin(send: Send, nowMs: number): Promise<void> {
  await send(partitionsAt(nowMs).flatMap(creationOf));
}

/** The partitions of the month in which a time is, and of those that follow. */
function partitionsAt(nowMs: number): readonly Partition[] {
  const now = new Date(nowMs);
  return Array.from({ length: monthsAhead + 1 }, (_, ahead) =>
    partitionOf(now.getUTCFullYear(), now.getUTCMonth() + ahead),
  );
}

/** The partition of a calendar month in UTC. Months are numbered from 0 on; the twelfth is in the year that follows. */
export function partitionOf(year: number, month: number): Partition {
  const startMs = Date.UTC(year, month);
  const name = `records_${new Date(startMs).toISOString().slice(0, 7).replace('-', '_')}`;
  const endMs = Date.UTC(year, month + 1);
  return { name, first: firstId(startMs), end: firstId(endMs), endMs };
}

/** The lowest id that a request can have at a time: ids begin with the milliseconds since 1970 (`next-id.ts`). */
function firstId(atMs: number): string {
  return `req_${atMs.toString(16).padStart(12, '0')}`;
}

/**
 * Creates a partition inside a transaction. It is made beside the table and attached then, which locks only the default
 * partition against others, whose rows of that range have to be moved before. The unit lock is not needed.
 */
function creationOf({ name, first, end }: Partition): readonly QueryConfig[] {
  const rows = `records_default WHERE request_id >= '${first}' AND request_id < '${end}'`;
  return [
    { text: `SELECT pg_advisory_xact_lock(${partitionLock})` },
    {
      text: `DO $create$ BEGIN
        IF to_regclass('${name}') IS NULL
          AND (SELECT count(*) FROM (SELECT 1 FROM ${rows} LIMIT ${maxMovedRows + 1}) AS early) <= ${maxMovedRows} THEN
          LOCK TABLE records_default IN ACCESS EXCLUSIVE MODE;
          CREATE TABLE ${name} (LIKE records INCLUDING ALL);
          WITH moved AS (DELETE FROM ${rows} RETURNING *) INSERT INTO ${name} SELECT * FROM moved;
          ALTER TABLE records ATTACH PARTITION ${name} FOR VALUES FROM ('${first}') TO ('${end}');
        END IF;
      EXCEPTION WHEN invalid_object_definition THEN
        -- The partition of all earlier records has this month.
      END $create$`,
    },
  ];
}
