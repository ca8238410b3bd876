import type {
  OpenedRecord,
  Reservation,
  SettledRecord,
  ConsumptionRecord,
  RecordFilter,
  RecordPage,
} from '../money/consumption.ts';

/**
 * The consumption record and the money in it. A settlement resolves when all of it is committed, and so does a beginning, unless
 * this process alone writes the database and has begun the record in memory.
 */
export interface Records {
  /** Begins a record, owned by this process run, and sets its hold aside, or does neither. */
  open(record: OpenedRecord): Promise<Reservation>;
  /**
   * Ends an open record, gives its hold back and charges it, in one step. A record that was closed as lost is settled in
   * the same way, once: the process that runs its request was taken for dead. Rejects when there is no such record, as
   * after an earlier settlement: a second one changes nothing. Resolves with the part of its charge that is not booked, in
   * nano-USD, because its key has spent as much as can be kept; with `null` when it is kept to be made later, and is not known to
   * be booked. With a claim it resolves only once it is made, and rejects with `ClaimLostError` when the claim was freed.
   */
  settle(record: SettledRecord): Promise<number | null>;
}

/** Records with the state of their database. */
export interface WatchedRecords extends Records {
  /**
   * False when the last write failed, one takes too long, or settlements wait for more than a lock on their account: a
   * record is begun before its call then.
   */
  readonly takesWrites: boolean;
}

/** Records that can be put in order after an outage or a crash. */
export interface RecoverableRecords extends Records {
  settle(record: SettledRecord): Promise<number>;
  /** Whether a settlement was made, this one and no other. */
  isSettled(record: SettledRecord): Promise<boolean>;
  /**
   * Closes as lost the open records whose owners have no lease: the holds go back, and nothing is charged. Resolves with
   * how many there were.
   */
  closeLostRecords(): Promise<number>;
  /** Commits a write that changes nothing. Rejects when the database takes none. */
  checkWrites(): Promise<void>;
}

/**
 * Records of a database that one process alone writes: what is handed in takes effect in that order. A call hands its unit in
 * at once, unless the database has to be asked first what it knows of records of this kind; `handingIn` is called then.
 */
export interface OrderedRecords extends RecoverableRecords, Pick<OpenRecords, 'closeAsLost'> {
  open(record: OpenedRecord, handingIn?: () => void): Promise<Reservation>;
  /** `handingIn` says whether the beginning of this record is not handed in: then it is no loss that there is none. */
  settle(record: SettledRecord, handingIn?: () => boolean): Promise<number>;
  /** Whether the beginning of this record would be handed in at once. */
  isKnownKind(record: OpenedRecord): boolean;
}

/** The records that are open. */
export interface OpenRecords {
  countOpen(): Promise<number>;
  /**
   * The ids of the open records that this process may close: those whose owners have no lease, and its own ones that were
   * begun before a time or after another one (milliseconds since 1970, by its own clock, which wrote when they were begun).
   */
  listClosable(ownBeforeMs: number, ownAfterMs: number): Promise<readonly string[]>;
  /** Closes records as lost, where they are still open. Resolves with how many there were. */
  closeAsLost(requestIds: readonly string[]): Promise<number>;
}

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

/** The largest page of a list. */
export const maxPageSize = 200;

/** The consumption record, as it is read. */
export interface RecordPages {
  /** The records behind the one that `before` names, newest first; `null` when it names none of the filter's key. */
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage | null>;
  /** One record, of one key unless `keyId` is `null`; `null` when there is none. */
  findRecord(requestId: string, keyId: string | null): Promise<ConsumptionRecord | null>;
}
