import type { ApiKey } from '../keys/api-key.ts';
import type { Refusal } from '../../shared/errors.ts';

/** A key that was looked up by its id. */
export interface NamedKey {
  readonly key: ApiKey;
  /** Why it can't be used now; `null` if it can. */
  readonly fault: 'revoked' | 'expired' | null;
}

/** Finds keys by the credential that a caller presents, and by the id that an operator names. */
export interface KeyDirectory {
  /** `null` for every kind of wrong key; a refusal when the store can't be read. */
  find(presented: string): Promise<ApiKey | null | Refusal>;
  /** The key with an id, whether it can be used or not; `null` if there is none, a refusal when the store can't be read. */
  findById(id: string): Promise<NamedKey | null | Refusal>;
  /** Whether a text has the form of an issued key, or is a declared one: without a look-up, so it may not be valid. */
  couldBeKey(presented: string): boolean;
}

/** The declared keys of the config in force, for a directory. */
export interface DeclaredHashes {
  /** The hashes of the declared keys. */
  readonly hashes: ReadonlySet<string>;
  /** Resolves with whether the keys are stored, within a limited time; until then a declared key can't be looked up. */
  readonly stored: Promise<boolean>;
}
