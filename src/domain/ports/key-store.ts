import type { ApiKey, KeyChanges } from '../keys/api-key.ts';
import type { DeclarationChanges, StoredDeclaration } from '../keys/declared-key.ts';

/** A page of keys, newest first; `next` is the cursor of the following page. */
export interface KeyPage {
  readonly keys: readonly ApiKey[];
  readonly next: string | null;
}

/** Finds keys by the hash of what a caller presents. */
export interface KeyLookUp {
  /** The key whose secret is valid now and has this hash; `null` when there is none. */
  findKeyByHash(hash: string): Promise<ApiKey | null>;
}

/** The stored keys, as an operator manages them. */
export interface KeyStore {
  /** Stores a key and its account, with an opening balance in nano-USD or with none at all. */
  createKey(key: ApiKey, hash: string, balanceNanos: number | null): Promise<void>;
  findKeyById(id: string): Promise<ApiKey | null>;
  /** The keys behind the one that `before` names, newest first; `null` when it names none. */
  listKeys(limit: number, before: string | null): Promise<KeyPage | null>;
  /** Changes the named settings alone; resolves with the changed key, `null` when there is none. */
  updateKey(id: string, changes: KeyChanges): Promise<ApiKey | null>;
  revokeKey(id: string, nowMs: number): Promise<void>;
  /** Replaces the secret; the one before stays valid until a time (milliseconds since 1970). */
  rotateKey(id: string, hash: string, oldValidUntilMs: number): Promise<void>;
  countKeys(): Promise<number>;
}

/** The keys that the config declares, as they are stored. */
export interface DeclarationStore {
  /** All keys that the config declares or has declared. */
  listDeclarations(): Promise<readonly StoredDeclaration[]>;
  /**
   * Stores changed declarations and revokes removed ones, whole or not at all. A key that is not declared and has the
   * secret of a declared one becomes that one, or is revoked if that one exists already.
   */
  storeDeclarations(changes: DeclarationChanges, nowMs: number): Promise<void>;
}
