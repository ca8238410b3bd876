import type { QueryConfig, QueryResult } from 'pg';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { sumFaults } from '../../domain/fault-reports.ts';

/** How often partitions are created, and those without rows dropped, and how soon again after a fault, in milliseconds. */
const createMs = 3_600_000;
const retryMs = 60_000;

/** The keeping of partitions for this month and the next one. */
interface PartitionKeeper {
  /** Creates them for the first time, and goes on from then. Never rejects: rows without a partition are kept, too. */
  start(send: Send): Promise<void>;
  stop(): void;
}

/** Keeps partitions of the records ahead of the time, and drops those of months that were removed. */
export function keepPartitions(send: Send, clock: Clock, onFault: ReportFault): PartitionKeeper {
  const failed = sumFaults(
    'the partitions of this month and the next one could not be created',
    onFault,
    clock,
  );
  const notDropped = sumFaults('partitions whose records were removed could not be dropped', onFault, clock);
  let isStopped = false;
  let cancel: (() => void) | null = null;
  const create = async (by: Send): Promise<void> => {
    let delayMs = createMs;
    try {
      await createRecordPartitions(by, clock.now());
    } catch (error) {
      delayMs = retryMs;
      if (!isStopped) failed(error);
    }
    // Tried again with the next creation: what is left costs disk alone.
    await dropEmptyPartitions(by).catch((error: unknown) => {
      if (!isStopped) notDropped(error);
    });
    if (!isStopped) cancel = clock.schedule(delayMs, () => void create(send));
  };
  return {
    start: create,
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}

/** How many months ahead partitions are created: nodes that can't create any for four weeks have the next one still. */
const monthsAhead = 1;

/** Nodes create and drop partitions one after the other. */
const partitionLock = 7_483_931;

/** How long a creation or a drop waits for a lock, in milliseconds. Meanwhile every statement on the records waits behind it. */
const lockWaitMs = 500;

/** How many rows of a month are moved to its partition; a month of which more were written before it has none. */
const maxMovedRows = 1_000;

/** Sends queries one behind the other on one connection. */
type Send = (queries: readonly QueryConfig[]) => Promise<readonly QueryResult[]>;

/** The partition of a month: its times are in milliseconds since 1970, and the end is the start of the next one. */
interface Partition {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Creates the partitions of this month and the next one, where they are missing, each in a transaction of its own. Rows of
 * a month without one are in the default partition, so that none is ever refused. Rejects with the first fault, once every
 * month was tried.
 */
async function createRecordPartitions(send: Send, nowMs: number): Promise<void> {
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
function partitionOf(year: number, month: number): Partition {
  const startMs = Date.UTC(year, month);
  const name = `records_${new Date(startMs).toISOString().slice(0, 7).replace('-', '_')}`;
  return { name, startMs, endMs: Date.UTC(year, month + 1) };
}

/**
 * Creates a partition inside a transaction. It is made beside the table and attached then, which locks only the default
 * partition against others, whose rows of that range have to be moved before. The unit lock is not needed.
 */
function creationOf({ name, startMs, endMs }: Partition): readonly QueryConfig[] {
  const rows = `records_default WHERE created_at >= ${startMs} AND created_at < ${endMs}`;
  return [
    { text: `SELECT pg_advisory_xact_lock(${partitionLock})` },
    {
      text: `DO $create$ BEGIN
        IF to_regclass('${name}') IS NULL
          AND (SELECT count(*) FROM (SELECT 1 FROM ${rows} LIMIT ${maxMovedRows + 1}) AS early) <= ${maxMovedRows} THEN
          LOCK TABLE records_default IN ACCESS EXCLUSIVE MODE;
          CREATE TABLE ${name} (LIKE record_rows INCLUDING ALL);
          -- A charge that moves is not lost.
          ALTER TABLE records_default DISABLE TRIGGER charge_is_kept_without_its_record;
          WITH moved AS (DELETE FROM ${rows} RETURNING *) INSERT INTO ${name} SELECT * FROM moved;
          CREATE TRIGGER records_are_not_truncated BEFORE TRUNCATE ON ${name} EXECUTE FUNCTION refuse_ledger_change();
          ALTER TABLE records_default ENABLE TRIGGER charge_is_kept_without_its_record;
          ALTER TABLE record_rows ATTACH PARTITION ${name} FOR VALUES FROM (${startMs}) TO (${endMs});
        END IF;
      EXCEPTION WHEN invalid_object_definition THEN
        -- The partition of all earlier records has this month.
      END $create$`,
    },
  ];
}

/** How long a partition may be looked through once it is locked, in milliseconds: one full of dead rows is left for later. */
const lookMs = 1_000;

/**
 * Drops the partitions of months whose records were all removed, which gives their disk back. Where a lock is not had at
 * once, or a row is found after all, a partition stays as it is. Rejects with the first fault, once every month was tried.
 */
async function dropEmptyPartitions(send: Send): Promise<void> {
  const [removals, found] = await send([
    { text: 'SELECT removed_before FROM record_removals WHERE id = 1' },
    { text: `SELECT relid::regclass::text AS name FROM pg_partition_tree('record_rows') WHERE isleaf` },
  ]);
  const [removal] = (removals?.rows ?? []) as readonly { readonly removed_before: number }[];
  if (removal === undefined) return;
  const faults: unknown[] = [];
  for (const { name } of (found?.rows ?? []) as readonly { readonly name: string }[]) {
    const [, year, month] = /^records_(\d{4})_(\d\d)$/.exec(name) ?? [];
    if (year === undefined || month === undefined) continue;
    if (partitionOf(Number(year), Number(month) - 1).endMs > removal.removed_before) continue;
    // Asked without a lock first: most months have rows for most of their time.
    const [rows] = await send([{ text: `SELECT 1 AS found FROM ${name} LIMIT 1` }]);
    if (rows?.rowCount === 0) await send(dropOf(name)).catch((error: unknown) => faults.push(error));
  }
  if (faults.length > 0) throw faults[0];
}

/** Drops one partition. The table is locked first, as by every statement on the records: so none meets it in a deadlock. */
function dropOf(name: string): readonly QueryConfig[] {
  return [
    { text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' },
    { text: `SET LOCAL lock_timeout = ${lockWaitMs}` },
    { text: `SET LOCAL statement_timeout = ${lookMs}` },
    { text: `SELECT pg_advisory_xact_lock(${partitionLock})` },
    {
      text: `DO $drop$ BEGIN
        IF to_regclass('${name}') IS NOT NULL THEN
          ALTER TABLE record_rows DETACH PARTITION ${name};
          IF EXISTS (SELECT 1 FROM ${name}) THEN RAISE EXCEPTION 'the partition ${name} has a row again'; END IF;
          DROP TABLE ${name};
        END IF;
      END $drop$`,
    },
    { text: 'COMMIT' },
  ];
}
