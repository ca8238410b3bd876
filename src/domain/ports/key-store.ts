import type { Refusal } from '../../shared/errors.ts';
import type { Actor } from '../audit/audit-line.ts';
import type { ApiKey, KeyChanges } from '../keys/api-key.ts';
import type {
  DeclarationChanges,
  DeclaredKey,
  MovedSecrets,
  StoredDeclarations,
} from '../keys/declared-key.ts';
import type { Limits } from '../limits/limits.ts';

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
  /**
   * Whether a text has the form of an issued key, or of an imported one, or is a declared one: without a look-up, so it may not
   * be valid.
   */
  couldBeKey(presented: string): boolean;
}

/** The declared keys of the config in force, for a directory. */
export interface DeclaredHashes {
  /** The hashes of the declared keys. */
  readonly hashes: ReadonlySet<string>;
  /** Resolves with whether the keys are stored, within a limited time; until then a declared key can't be looked up. */
  readonly stored: Promise<boolean>;
}

/** The states of a key: whether it can be used, and why not. */
export const keyStates = ['active', 'revoked', 'expired'] as const;

export type KeyState = (typeof keyStates)[number];

/** Which keys are listed: all that fit each of the given fields. */
export interface KeyFilter {
  /** A part of the name or the beginning of the id, in upper or lower case. */
  readonly search?: string | undefined;
  readonly state?: KeyState | undefined;
}

/** A page of keys, newest first; `next` is the cursor of the following page. */
export interface KeyPage {
  readonly keys: readonly ApiKey[];
  readonly next: string | null;
}

/** Finds keys by the hash of what a caller presents, and by their ids. */
export interface KeyLookUp {
  /** The key whose secret is valid now and has this hash; `null` when there is none. */
  findKeyByHash(hash: string): Promise<ApiKey | null>;
  /** The key with this id, also one that is revoked or expired; `null` when there is none. */
  findKeyById(id: string): Promise<ApiKey | null>;
}

/**
 * The stored keys, as an operator manages them. A change that is made by someone leaves a line in the audit, in the unit that
 * makes it; one that changes nothing leaves none.
 */
export interface KeyStore extends Pick<KeyLookUp, 'findKeyById'> {
  /** Stores a key and its account, with an opening balance in nano-USD or with none at all. */
  createKey(key: ApiKey, hash: string, balanceNanos: number | null, by?: Actor): Promise<void>;
  /**
   * Stores a key as `createKey` does, unless another one has this hash, or had it before a rotation or a change of the
   * config; resolves with the id of the key that has it.
   */
  importKey(key: ApiKey, hash: string, balanceNanos: number | null, by?: Actor): Promise<string>;
  /** The id of the key that has this hash, or had it: also one that is revoked or expired; `null` when there is none. */
  findHolder(hash: string): Promise<string | null>;
  /** Stores a key without a balance if there is no key yet; resolves with whether it did. One call of all nodes does. */
  createFirstKey(key: ApiKey, hash: string, by?: Actor): Promise<boolean>;
  /** The keys behind the one that `before` names, newest first; `null` when it names none. That key need not fit the filter. */
  listKeys(filter: KeyFilter, limit: number, before: string | null): Promise<KeyPage | null>;
  /**
   * Changes the named settings alone, so that changes made at the same time undo nothing of each other; resolves with the key
   * as it is then, `null` when there is none. Like the two methods below, it changes nothing of a declared key.
   */
  updateKey(id: string, changes: KeyChanges, by?: Actor): Promise<ApiKey | null>;
  /** A key that was revoked before keeps its time. */
  revokeKey(id: string, nowMs: number, by?: Actor): Promise<ApiKey | null>;
  /** Replaces the secret; the one before stays valid until a time (milliseconds since 1970). */
  rotateKey(id: string, hash: string, oldValidUntilMs: number, by?: Actor): Promise<ApiKey | null>;
  countKeys(): Promise<number>;
  /** The own limits of those of some keys that are stored, by their ids. */
  limitsOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, Partial<Limits>>>;
  /** The names of those of some keys that are stored, by their ids. */
  namesOf(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The keys that the config declares, as they are stored. */
export interface DeclarationStore {
  /** What these declared keys have to be compared with: as many keys as configs can declare, and no more. */
  listDeclarations(declared: readonly DeclaredKey[]): Promise<StoredDeclarations>;
  /**
   * Stores changed declarations and revokes removed ones, whole or not at all. A secret that another key has is taken
   * from it: an issued key becomes the declared one, and a key that is declared no more is renamed, with its id and
   * account, unless there is a declared key of that name already. In all other cases a secret of a key with a balance
   * gives the account of its new key a balance of 0, so that no prepaid client goes on without paying.
   */
  storeDeclarations(changes: DeclarationChanges, nowMs: number): Promise<MovedSecrets>;
}
