import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Account, Credit, Accounts } from '../domain/ports/accounts.ts';
import {
  defaultWeight,
  idFrom,
  keyEntropyBytes,
  mintKey,
  mintSecret,
  secretEntropyBytes,
} from '../domain/keys/api-key.ts';
import { environmentKeyName } from '../domain/keys/declared-key.ts';
import type { Actor } from '../domain/audit/audit-line.ts';
import type { ApiKey, KeyChanges, KeySettings } from '../domain/keys/api-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyFilter, KeyPage, KeyStore } from '../domain/ports/key-store.ts';

/** A key just made or rotated: the only moment at which its secret can be seen. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

/** What became of a key that was to be imported: the id of the key with its secret, and whether it was made for that. */
interface KeyImport {
  readonly id: string;
  readonly imported: boolean;
}

/** What managing keys needs. Secrets are handed out in full; only their hashes are stored. */
export interface KeyManagementPorts {
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly hash: (secret: string) => string;
  /** Empties the cache of keys, so that every change counts from the next request on. */
  readonly forgetKeys: () => void;
  readonly store: KeyStore & Accounts;
}

/**
 * What an operator does with keys. A declared key is not changed here. Each change has a line in the audit, which says who made
 * it. Rejects only when the database fails.
 */
export interface KeyManagement {
  issue(by: Actor, name: string, settings?: KeySettings): Promise<IssuedKey>;
  /**
   * Stores a key of another gateway by the hash of its secret, in hexadecimal, which its holder keeps; `imported` is false
   * where a key has this secret or had it, which stays as it is.
   */
  import(by: Actor, hash: string, name: string, settings: KeySettings): Promise<KeyImport>;
  /** The id of the key that has the secret of this hash, or had it; `null` if none has. */
  findHolder(hash: string): Promise<string | null>;
  /** Issues a key if there is none yet, on any node; `null` otherwise. */
  issueFirst(by: Actor, name: string): Promise<IssuedKey | null>;
  /** Stores a key under its id if there is none, on any node. Its secret is not told: only a rotation makes one that is. */
  storeOnce(by: Actor, key: ApiKey): Promise<void>;
  /** `null` when `before` names no key. */
  list(filter: KeyFilter, limit: number, before: string | null): Promise<KeyPage | null>;
  show(id: string): Promise<ApiKey | Refusal>;
  change(by: Actor, id: string, changes: KeyChanges): Promise<ApiKey | Refusal>;
  /** Revokes a key: none of its requests begins from then on; those in progress go on to their end. */
  revoke(by: Actor, id: string): Promise<ApiKey | Refusal>;
  /** Makes a new secret; the old one stays valid for `graceMs`. */
  rotate(by: Actor, id: string, graceMs: number): Promise<IssuedKey | Refusal>;
  /** Books a payment; the same reference is booked once. */
  credit(
    by: Actor,
    credit: Credit,
  ): Promise<{ readonly booked: boolean; readonly account: Account } | Refusal>;
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account>>;
}

export function createKeyManagement({
  clock,
  randomBytes,
  hash,
  forgetKeys,
  store,
}: KeyManagementPorts): KeyManagement {
  /** Changes a key, and returns the changed key: a refusal if it is declared, and not changed. */
  const alter = async (work: Promise<ApiKey | null>): Promise<ApiKey | Refusal> => {
    const changed = await work;
    forgetKeys();
    return changeable(changed);
  };
  const mint = (name: string, settings: KeySettings): IssuedKey => {
    const { id, secret } = mintKey(randomBytes(keyEntropyBytes));
    return { key: describeNewKey(name, settings, id, clock.now()), secret };
  };
  return {
    async issue(by, name, settings = {}) {
      const issued = mint(name, settings);
      await store.createKey(issued.key, hash(issued.secret), settings.balanceNanos ?? null, by);
      return issued;
    },
    async import(by, secretHash, name, settings) {
      const key = describeNewKey(name, settings, idFrom(randomBytes(keyEntropyBytes)), clock.now());
      const id = await store.importKey(key, secretHash, settings.balanceNanos ?? null, by);
      return { id, imported: id === key.id };
    },
    findHolder: (secretHash) => store.findHolder(secretHash),
    async issueFirst(by, name) {
      if ((await store.countKeys()) > 0) return null;
      const issued = mint(name, {});
      return (await store.createFirstKey(issued.key, hash(issued.secret), by)) ? issued : null;
    },
    storeOnce: (by, key) =>
      storeOnce(by, key, hash(mintSecret(key.id, randomBytes(secretEntropyBytes))), store),
    list: (filter, limit, before) => store.listKeys(filter, limit, before),
    show: async (id) => (await store.findKeyById(id)) ?? unknownKey(),
    async change(by, id, changes) {
      const found = await findChangeable(id, store);
      if (isRefusal(found)) return found;
      if (found.budget === null && lacksSettings(changes.budget)) return missingBudget();
      return alter(store.updateKey(id, changes, by));
    },
    revoke: (by, id) => alter(store.revokeKey(id, clock.now(), by)),
    async rotate(by, id, graceMs) {
      const found = await findChangeable(id, store);
      if (isRefusal(found)) return found;
      if (found.revokedAtMs !== null)
        return refuse('invalid_value', "This key is revoked and can't be rotated. Create a new key.");
      const secret = mintSecret(id, randomBytes(secretEntropyBytes));
      const key = await alter(store.rotateKey(id, hash(secret), clock.now() + graceMs, by));
      return isRefusal(key) ? key : { key, secret };
    },
    async credit(by, credit) {
      const { result, account } = await store.credit(credit, by);
      if (account === null) return unknownKey();
      if (result === 'other amount') return otherAmount();
      if (result === 'too much') return tooMuch();
      forgetKeys();
      return { booked: result === 'booked', account };
    },
    accounts: (keyIds) => store.accounts(keyIds),
  };
}

/** A key of these settings that is new. */
export function describeNewKey(
  name: string,
  {
    balanceNanos,
    models,
    allowFrom,
    tags,
    expiresAt,
    lowBalanceNanos,
    compatibility = {},
    budget,
    group,
    weight,
    joinRetriesMs,
    ...limits
  }: KeySettings,
  id: string,
  createdAtMs: number,
): ApiKey {
  return {
    id,
    name,
    createdAtMs,
    limits,
    models: models ?? null,
    allowFrom: allowFrom ?? null,
    tags: tags ?? [],
    expiresAt: expiresAt ?? null,
    lowBalanceNanos: lowBalanceNanos ?? null,
    revokedAtMs: null,
    hasBalance: balanceNanos !== undefined,
    compatibility,
    budget: budget ?? null,
    group: group ?? null,
    weight: weight ?? defaultWeight,
    joinRetriesMs: joinRetriesMs ?? null,
    isDeclared: false,
  };
}

/** Stores a key unless there is one under its id. */
async function storeOnce(by: Actor, key: ApiKey, secretHash: string, store: KeyStore): Promise<void> {
  const isStored = async (): Promise<boolean> => (await store.findKeyById(key.id)) !== null;
  if (await isStored()) return;
  try {
    await store.createKey(key, secretHash, null, by);
  } catch (error) {
    // Another request, or another node, may have stored it meanwhile.
    if (!(await isStored())) throw error;
  }
}

/** Finds a key that may be changed here. */
async function findChangeable(id: string, store: KeyStore): Promise<ApiKey | Refusal> {
  return changeable(await store.findKeyById(id));
}

function changeable(found: ApiKey | null): ApiKey | Refusal {
  if (found === null) return unknownKey();
  return found.isDeclared ? declaredKey(found) : found;
}

/** Refuses to change a declared key: the next start or reload would undo the change. */
function declaredKey({ name, revokedAtMs }: ApiKey): Refusal {
  const place =
    name === environmentKeyName ? 'the environment (TEXTGATE_KEY or TEXTGATE_KEY_FILE)' : 'the config';
  return refuse(
    'key_is_declared',
    revokedAtMs === null
      ? `This key is declared in ${place}: change it there. Only its balance is changed here, by credits.`
      : `This key was declared in ${place}, and revoked when it was removed there. Declare its name again to use it.`,
  );
}

/** Whether a change of a budget needs one that is there. */
function lacksSettings(changes: KeyChanges['budget']): boolean {
  if (changes === undefined || changes === null) return false;
  return changes.amountNanos === undefined || changes.per === undefined;
}

function missingBudget(): Refusal {
  return refuse('invalid_value', 'This key has no budget yet: give its amount and its period, too.', {
    param: 'budget',
  });
}

function otherAmount(): Refusal {
  const message = 'This reference stands for another amount: use a new one.';
  return refuse('invalid_value', message, { param: 'reference' });
}

function tooMuch(): Refusal {
  const message = 'The balance would be too large to be kept exactly.';
  return refuse('invalid_value', message, { param: 'amount' });
}

function unknownKey(): Refusal {
  return refuse('key_not_found', 'No key has this id. The list of keys has all of them.');
}
