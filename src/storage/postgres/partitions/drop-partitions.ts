import type { QueryConfig } from 'pg';
import { lockWaitMs, partitionLock, partitionOf } from './record-partitions.ts';
import type { Send } from './record-partitions.ts';

/** How long a partition may be looked through once it is locked, in milliseconds: one full of dead rows is left for later. */
const lookMs = 1_000;

/**
 * Drops the partitions of months whose records were all removed, which gives their disk back. Where a lock is not had at
 * once, or a row is found after all, a partition stays as it is. Rejects with the first fault, once every month was tried.
 */
export async function dropEmptyPartitions(send: Send): Promise<void> {
  const [removals, found] = await send([
    { text: 'SELECT removed_before FROM record_removals WHERE id = 1' },
    { text: `SELECT relid::regclass::text AS name FROM pg_partition_tree('records') WHERE isleaf` },
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
          ALTER TABLE records DETACH PARTITION ${name};
          IF EXISTS (SELECT 1 FROM ${name}) THEN RAISE EXCEPTION 'the partition ${name} has a row again'; END IF;
          DROP TABLE ${name};
        END IF;
      END $drop$`,
    },
    { text: 'COMMIT' },
  ];
}
