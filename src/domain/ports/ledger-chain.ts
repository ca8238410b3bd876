import type { Pause } from '../pause.ts';
import type { ChainState, LedgerRow } from '../statements/chain.ts';
import type { AccountHead, LedgerRoot } from '../statements/root.ts';
import type { PublicKey, SigningKey } from '../../shared/signing-key.ts';

/** The part of an account's ledger that a statement may have; numbers of rows. */
export interface LedgerPart {
  /** The last row that is folded; 0 without any. A statement can begin behind it at the earliest. */
  readonly folded: number;
  /** The last row from before the beginning of the period, and from before its end. */
  readonly beforeFrom: number;
  readonly beforeTo: number;
  readonly last: number;
}

/** Why a chain can't be followed: the postings in question were folded meanwhile, or a row is missing or was changed. */
export class ChainError extends Error {
  override readonly name = 'ChainError';
  readonly isFolded: boolean;

  constructor(message: string, isFolded = false) {
    super(message);
    this.isFolded = isFolded;
  }
}

/** The chains of hashes over the ledgers of all accounts. */
export interface LedgerChain {
  /** Finds the rows of a period (milliseconds since 1970; `null` for no bound); `null` for an account that is unknown. */
  find(keyId: string, fromMs: number | null, toMs: number | null): Promise<LedgerPart | null>;
  /**
   * The chain of an account up to a row that exists, from the nearest seal before it on; seals what it went through. Rejects
   * with a `ChainError`, and when `pause` does.
   */
  stateAt(keyId: string, number: number, pause: Pause): Promise<ChainState>;
  /** Some rows of an account that follow each other, at most `rowsPerStep`. */
  rows(keyId: string, after: number, upTo: number): Promise<readonly LedgerRow[]>;
  /**
   * Computes the chain again from a sealed row to a later one, and holds it against the seals in between. Rejects with a
   * `ChainError` where it contradicts them.
   */
  recompute(keyId: string, after: number, upTo: number): Promise<ChainState>;
}

/** The roots over all accounts. */
export interface LedgerRoots {
  /** The newest root; `null` before the first one. */
  lastRoot(): Promise<LedgerRoot | null>;
  /** The roots before a number, newest first. */
  listRoots(before: number | null, limit: number): Promise<readonly LedgerRoot[]>;
  /** The accounts whose ledgers have grown since the last root, a page at a time, each with the number of its last row. */
  grown(pause: Pause): AsyncIterable<readonly Omit<AccountHead, 'hash'>[]>;
  /** Stores heads for a root that is not made yet. */
  storeHeads(root: number, heads: readonly AccountHead[]): Promise<void>;
  /** The heads that a root has, a page at a time, in the order of the bytes of their keys. */
  headsOf(root: number, pause: Pause): AsyncIterable<readonly AccountHead[]>;
  /** How often heads were stored. */
  headChanges(): Promise<number>;
  /**
   * Stores a root; resolves with whether it did: a number is given once, and none to a root whose heads another process has
   * changed since they were read, with `headChanges` before.
   */
  storeRoot(root: LedgerRoot, headChanges: number): Promise<boolean>;
}

/** A key that is stored. */
export interface StoredKey extends PublicKey {
  readonly createdAtMs: number;
}

/** The keys that have signed statements. */
export interface SigningKeys {
  /**
   * The key that signs: the given one, or else the one that the database keeps, which is made at its first use. Its public
   * key is listed from then on.
   */
  current(given: SigningKey | null): Promise<SigningKey>;
  /** All that have signed, newest first. */
  list(): Promise<readonly StoredKey[]>;
}
