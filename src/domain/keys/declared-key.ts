import type { Compatibility } from '../../protocol/contract/compatibility.ts';
import type { ApiKey } from './api-key.ts';
import type { Limits } from '../limits.ts';

/** How many keys a config may declare: all of them are compared with the stored ones at each start and reload. */
export const maxDeclaredKeys = 1_000;

/** The name of the key that the environment declares. */
export const environmentKeyName = 'environment';

/** A key as the config declares it. Its name is its identity; its secret and its settings may change. */
export interface DeclaredKey {
  readonly name: string;
  /** The SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  readonly limits: Partial<Limits>;
  /** The models that the key may use; `null` for all. */
  readonly models: readonly string[] | null;
  /** When the key expires, in milliseconds since 1970; `null` for never. */
  readonly expiresAt: number | null;
  readonly compatibility: Partial<Compatibility>;
}

/** A declared key as it is stored, with the hash of its secret. */
export interface StoredDeclaration {
  readonly key: ApiKey;
  readonly hash: string;
}

/** What has to be written so that exactly the declared keys are usable. */
export interface DeclarationChanges {
  /** The keys that are new or differ from what is stored, each with the id that it gets if it is new. */
  readonly changed: readonly { readonly id: string; readonly declared: DeclaredKey }[];
  /** The names of the keys that are stored as declared, and are declared no more. */
  readonly removed: readonly string[];
}

/** Compares the declared keys with the stored ones. `idOf` derives the id of a new key from its name. */
export function compareDeclarations(
  stored: readonly StoredDeclaration[],
  declared: readonly DeclaredKey[],
  idOf: (name: string) => string,
): DeclarationChanges {
  const names = new Set(declared.map(({ name }) => name));
  const known = new Map(stored.map((row) => [row.key.name, row]));
  return {
    changed: declared
      .filter((key) => !isStored(key, known.get(key.name)))
      .map((key) => ({ id: known.get(key.name)?.key.id ?? idOf(key.name), declared: key })),
    removed: stored
      .filter(({ key }) => key.revokedAtMs === null && !names.has(key.name))
      .map(({ key }) => key.name),
  };
}

function isStored(declared: DeclaredKey, stored: StoredDeclaration | undefined): boolean {
  if (stored === undefined || stored.key.revokedAtMs !== null) return false;
  return writeSettings(declared, declared.hash) === writeSettings(stored.key, stored.hash);
}

/** Everything that a declaration decides, as one text in a fixed order. */
function writeSettings(
  { limits, models, expiresAt, compatibility }: Omit<DeclaredKey, 'name' | 'hash'>,
  hash: string,
): string {
  const { concurrency, requestsPerMinute, queueWaitMs } = limits;
  const { sampling, unknownFields, responsesDone } = compatibility;
  return JSON.stringify([
    hash,
    [concurrency ?? null, requestsPerMinute ?? null, queueWaitMs ?? null],
    models,
    expiresAt,
    [sampling ?? null, unknownFields ?? null, responsesDone ?? null],
  ]);
}
