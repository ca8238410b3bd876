/**
 * How long a lease lasts after its last renewal, in milliseconds. By the clock of the database it decides what is over; a
 * process that counts it from the beginning of a renewal, by a clock that never jumps, is never later than the database.
 */
export const leaseMs = 15_000;

/**
 * The leases of the processes that share a database, on their open records and slots. A lease is held by an owner: one run
 * of a process, or a part of it where others have ended its lease meanwhile. What belongs to an owner without a lease may
 * be closed and freed by any process. All of it is judged by the clock of the database.
 */
export interface RecordLeases {
  /** The owner of what begins now. */
  owner(): string;
  /**
   * Renews the lease of this process, or takes it. Resolves with whether others had ended it: this process is another
   * owner from now on then.
   */
  renewLease(): Promise<boolean>;
  /**
   * Ends the leases of others that are over; resolves with their owners. A process that has not held its own lease
   * without interruption for as long as a lease lasts ends none.
   */
  endOverLeases(): Promise<readonly string[]>;
  /** Ends the lease of this process. */
  endLease(): Promise<void>;
}
