import type { ConsumptionRecord } from '../domain/money/consumption.ts';
import { readPages } from '../domain/pause.ts';
import type { Pause } from '../domain/pause.ts';
import type { RecordArchive, Retention } from '../domain/ports/retention.ts';

/** How many records are archived and removed in one step: a few milliseconds of the database. */
const recordsPerStep = 500;

/** How records are removed. */
export interface RemovalOptions {
  /** All that were begun before this time go, in milliseconds since 1970. */
  readonly beforeMs: number;
  /** Has each record on the disk before it is removed; `null` where no copy is wanted. */
  readonly archive: RecordArchive | null;
  /** Waits between two steps; rejects when the removal is to stop. */
  readonly pause: Pause;
  readonly onRemoved: (count: number) => void;
}

/** What a removal has done. */
export interface Removal {
  readonly records: number;
  /** Postings of the ledger that were folded. */
  readonly postings: number;
}

/**
 * Removes old records a step at a time, oldest first, and folds their postings then. A step is in the archive before it is
 * removed, so a process that dies at any point has lost none; the next removal goes on.
 */
export async function removeOldRecords(
  retention: Retention,
  { beforeMs, archive, pause, onRemoved }: RemovalOptions,
): Promise<Removal> {
  let records = 0;
  for await (const some of readOldest(retention, beforeMs, pause)) {
    await archive?.append(some);
    const count = await retention.removeRecords(some.map(asRead), beforeMs);
    records += count;
    onRemoved(count);
  }
  return { records, postings: await retention.foldLedgers(pause) };
}

/** Reads the ended records from before a time a step at a time, oldest first. */
export function readOldest(
  retention: Retention,
  beforeMs: number,
  pause: Pause,
): AsyncGenerator<readonly ConsumptionRecord[]> {
  return readPages((last) => retention.listOldest(beforeMs, last, recordsPerStep), recordsPerStep, pause);
}

function asRead({ requestId, outcome }: ConsumptionRecord) {
  return { requestId, isLost: outcome === 'lost' };
}
