import type { ConsumptionRecord } from '../money/consumption.ts';
import type { Pause } from '../pause.ts';

/** What a record is removed by: its id, and whether it may have changed since it was read. */
export interface ReadRecord {
  readonly requestId: string;
  /** Whether it was closed as `lost`. Only such a one may still be settled: it is not removed if it was. */
  readonly isLost: boolean;
}

/** The end of old records. Times are milliseconds since 1970. */
export interface Retention {
  /** Ended records from before a time, oldest first, behind one: ids are in the order of time. */
  listOldest(
    beforeMs: number,
    after: Pick<ReadRecord, 'requestId'> | null,
    limit: number,
  ): Promise<readonly ConsumptionRecord[]>;
  /**
   * Removes some records from before a time, in one unit, where they are as they were read; resolves with how many. From
   * then on no settlement of a request from before that time is made whose beginning is not stored.
   */
  removeRecords(records: readonly ReadRecord[], beforeMs: number): Promise<number>;
  /**
   * Folds the oldest postings of every ledger into one sum per account: those from before the last removal, up to the first
   * one whose record is still there. Resolves with how many were folded; rejects when `pause` does.
   */
  foldLedgers(pause: Pause): Promise<number>;
  /** The time before which records were removed; `null` if none ever was. */
  removedBefore(): Promise<number | null>;
  /** When the oldest ended record was begun; `null` without any. */
  oldestRecord(): Promise<number | null>;
}

/** Where records are written before they are removed. */
export interface RecordArchive {
  /**
   * Resolves when all of these records are on the disk, each of them once, also where the last call was broken off by the end
   * of a process. Rejects when they can't be written.
   */
  append(records: readonly ConsumptionRecord[]): Promise<void>;
}
