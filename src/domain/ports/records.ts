import type { OpenedRecord, Reservation, SettledRecord } from '../consumption.ts';

/** The consumption record and the money in it. Both calls resolve when all of it is committed. */
export interface Records {
  /** Begins a record, owned by this process run, and sets its hold aside, or does neither. */
  open(record: OpenedRecord): Promise<Reservation>;
  /**
   * Ends an open record, gives its hold back and charges it, in one step. A record that was closed as lost is settled in
   * the same way, once: the process that runs its request was taken for dead. Rejects when there is no such record, as
   * after an earlier settlement: a second one changes nothing.
   */
  settle(record: SettledRecord): Promise<void>;
}

/** Records with the state of their database. */
export interface WatchedRecords extends Records {
  /** False when the last write failed, one takes too long, or settlements wait: a record is begun before its call then. */
  readonly takesWrites: boolean;
}

/** Records that can be put in order after an outage or a crash. */
export interface RecoverableRecords extends Records {
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

/** The records that are open. */
export interface OpenRecords {
  countOpen(): Promise<number>;
  /**
   * The ids of the open records that this process run may close: its own, and those whose owners have no lease. Only
   * those that were begun before a time (milliseconds since 1970).
   */
  listClosable(beforeMs: number): Promise<readonly string[]>;
  /** Closes records as lost, where they are still open. Resolves with how many there were. */
  closeAsLost(requestIds: readonly string[]): Promise<number>;
}

/** The lease of one process run on its open records, and how often it was renewed. */
export interface Lease {
  readonly owner: string;
  readonly renewals: number;
}

/**
 * The leases on open records. An owner is one run of a process, with an id of its own: a process that starts again is
 * another owner. Beginning a record takes the lease.
 */
export interface RecordLeases {
  /** Renews the lease of this process run, or takes it anew; resolves with the leases of all other owners. */
  renewLease(): Promise<readonly Lease[]>;
  /** Ends a lease that was not renewed since it was read; resolves with whether it was ended. */
  endLease(lease: Lease): Promise<boolean>;
}
