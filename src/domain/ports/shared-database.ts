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
