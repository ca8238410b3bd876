import type { UsedSlice } from '../limits/token-limits.ts';

/** The tokens that keys with a limit of tokens have used, where every node sees the same. */
export interface TokenUse {
  /** What a key used, as far as it still counts. Rejects with a `StorageError` when the database is away. */
  used(keyId: string): Promise<readonly UsedSlice[]>;
  /**
   * Adds tokens to what a key used. They are counted no later than a settlement of the key that is handed in after them.
   * Never rejects: what the database does not take is reported, and not counted.
   */
  add(keyId: string, tokens: number): Promise<void>;
}
