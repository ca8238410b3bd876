import type { SettledRecord } from '../consumption.ts';

/** A file of settlements that the database has not taken, which outlives the process. */
export interface SettlementSpool {
  /**
   * Opens it, once this process owns the database. Resolves with the settlements that an earlier process left, and the
   * number of damaged lines; rejects when there is a spool that can't be read.
   */
  open(): Promise<{ readonly records: readonly SettledRecord[]; readonly damaged: number }>;
  /** Resolves when the settlement is on the disk; rejects when it could not be written. */
  append(record: SettledRecord): Promise<void>;
  /** Empties it of everything that was appended before the call. */
  clear(): Promise<void>;
  /** Rejects when what it holds is not in the file that the next process would read. */
  close(): Promise<void>;
}
