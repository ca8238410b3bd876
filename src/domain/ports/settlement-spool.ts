import type { SettledRecord } from '../money/consumption.ts';

/** A file of settlements that the database has not taken, which outlives the process. */
export interface SettlementSpool {
  /**
   * Opens the spool, once this process owns the database. Resolves with the settlements that an earlier process left, and
   * the number of damaged lines; rejects when the spool can't be read.
   */
  open(): Promise<{ readonly records: readonly SettledRecord[]; readonly damaged: number }>;
  /** Resolves when the settlement is on the disk; rejects when it could not be written. */
  append(record: SettledRecord): Promise<void>;
  /** Removes every settlement that was appended before the call. */
  clear(): Promise<void>;
  /** Closes the spool. Rejects when its settlements are not in the file that the next process would read. */
  close(): Promise<void>;
}
