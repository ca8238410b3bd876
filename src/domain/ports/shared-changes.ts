/** What other processes have changed in the database that they share with this one, as one read found it. */
export interface FoundChanges {
  /** How often keys were changed: if it differs from the last read, cached keys are out of date. */
  readonly keyChanges: number;
  /** Requests of this process that another one has cancelled, oldest first. */
  readonly cancelled: readonly string[];
  /** Whether this process has a lease that has not its name and address yet. */
  readonly lacksName: boolean;
}

/** The changes that other processes make in a shared database. */
export interface SharedChanges {
  /** Reads what is changed: all that was committed before the call. */
  find(): Promise<FoundChanges>;
  /** Removes the cancellations that were found, once they are made, and writes down the name and address of this process. */
  acknowledge(found: FoundChanges): Promise<void>;
}

/** Work that one process does for all that share a database. */
export interface SharedDuty {
  /**
   * Whether this process has the duty, which it gets when no other process with a lease has it, and keeps as long as it
   * has a lease itself.
   */
  isOurs(): Promise<boolean>;
}

/** A duty that a process may leave to others while it runs. */
export interface LeavableDuty extends SharedDuty {
  /** Lets another process get the duty, if this one has it. */
  giveUp(): Promise<void>;
}

/** What all nodes on a database see in the same way. */
type SharedState = 'balances' | 'slots' | 'starts';

/** The state of a database that several nodes share, for operators. */
export interface SharedDatabaseState {
  readonly shared: readonly SharedState[];
  /** Whether a commit waits for a second server that has it, too; `unknown` until the database has said so. */
  readonly synchronousStandby: 'configured' | 'none' | 'unknown';
  /** How long ago the newest unit was committed that the database has acknowledged, in milliseconds; `null` before it. */
  readonly newestCommitAgeMs: number | null;
  readonly warnings: readonly string[];
}
