import type { OpenedRecord, Reservation, SettledRecord } from '../consumption.ts';

/** The consumption record and the money in it. Both calls resolve when all of it is committed. */
export interface Records {
  /** Begins a record and sets its hold aside, or does neither. */
  open(record: OpenedRecord): Promise<Reservation>;
  /** Ends an open record, gives its hold back and charges it, in one step; a second settlement changes nothing. */
  settle(record: SettledRecord): Promise<void>;
}

/** Records that know how their database is. */
export interface WatchedRecords extends Records {
  /** False when the last write failed, one takes too long, or settlements wait: a record is begun before its call then. */
  readonly takesWrites: boolean;
}

/** Records that can be brought in order after an outage or a crash. */
export interface RecoverableRecords extends Records {
  /** Whether a settlement was made, this one and no other. */
  isSettled(record: SettledRecord): Promise<boolean>;
  /** Ends the records that a process which died left open; returns how many there were. */
  closeLostRecords(): Promise<number>;
  /** Commits a write that changes nothing. Rejects when the database takes none. */
  checkWrites(): Promise<void>;
}
