import type { ApiKey, KeyTerms } from './api-key.ts';

/** How many keys a config may declare: all of them are compared with the stored ones at each start and reload. */
export const maxDeclaredKeys = 1_000;

/** The name of the key that the environment declares. */
export const environmentKeyName = 'environment';

/** A key as the config declares it. Its name is its identity; its secret and its settings may change. */
export interface DeclaredKey extends KeyTerms {
  readonly name: string;
  /** The SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
}

/** A declared key as it is stored, with the hash of its secret. */
interface StoredDeclaration {
  readonly key: ApiKey;
  readonly hash: string;
}

/** What is stored that declared keys have to be compared with. */
export interface StoredDeclarations {
  /** The keys that are stored as declared: those in force, and revoked ones of which the name is declared again. */
  readonly keys: readonly StoredDeclaration[];
  /** The hashes of the declared secrets that were retired: their issued key was revoked, or rotated and out of grace. */
  readonly retired: ReadonlySet<string>;
  /** The number of the last line of the audit; 0 without any. */
  readonly lastLine: number;
}

/** A declared key that is new or differs from what is stored. */
export interface ChangedDeclaration {
  /** The id that it gets if it is new. */
  readonly id: string;
  /** The id that it gets if it is new and another key has the first one, which was declared under this name before. */
  readonly spareId: string;
  readonly declared: DeclaredKey;
  /** The stored key of its name; absent if there is none. */
  readonly before?: StoredDeclaration | undefined;
}

/** What has to be written so that exactly the declared keys are usable. */
export interface DeclarationChanges {
  readonly changed: readonly ChangedDeclaration[];
  /** The names of the keys that are stored as declared, and are declared no more. */
  readonly removed: readonly string[];
  /** The last line of the audit when the stored keys were read; absent where no lines are wanted. */
  readonly lastLine?: number | undefined;
}

/** What became of keys whose secrets were stored before, by the names that they have now. */
export interface MovedSecrets {
  /** Keys that keep their id and account under a new name. */
  readonly renamed: readonly string[];
  /** Issued keys that are declared now. Their earlier secrets are refused, even in a grace period. */
  readonly adopted: readonly string[];
  /** Keys that got a balance of 0, because their secret was that of another key with a balance. */
  readonly unfunded: readonly string[];
}

/** What storing declarations did, and which it refused, by the names of the keys. */
export interface DeclarationReport extends MovedSecrets {
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** Keys that are not stored, because their secret was retired. */
  readonly refused: readonly string[];
}

/** Compares the declared keys with the stored ones. `idsOf` makes the ids of a new key for its name. */
export function compareDeclarations(
  stored: StoredDeclarations,
  declared: readonly DeclaredKey[],
  idsOf: (name: string) => Pick<ChangedDeclaration, 'id' | 'spareId'>,
): DeclarationChanges & Pick<DeclarationReport, 'refused'> {
  const names = new Set(declared.map(({ name }) => name));
  const known = new Map(stored.keys.map((row) => [row.key.name, row]));
  const isRetired = ({ hash }: DeclaredKey): boolean => stored.retired.has(hash);
  return {
    changed: declared
      .filter((key) => !isRetired(key) && !isStored(key, known.get(key.name)))
      .map((key) => {
        const { id, spareId } = idsOf(key.name);
        return { id, spareId, declared: key, before: known.get(key.name) };
      }),
    removed: stored.keys
      .filter(({ key }) => key.revokedAtMs === null && !names.has(key.name))
      .map(({ key }) => key.name),
    lastLine: stored.lastLine,
    refused: declared.filter(isRetired).map(({ name }) => name),
  };
}

function isStored(declared: DeclaredKey, stored: StoredDeclaration | undefined): boolean {
  if (stored === undefined || stored.key.revokedAtMs !== null) return false;
  return declared.hash === stored.hash && writeTerms(declared) === writeTerms(stored.key);
}

/** What a key has beside its terms; no term has a setting of such a name. */
const identity = ['id', 'name', 'hash', 'createdAtMs', 'revokedAtMs', 'hasBalance', 'isDeclared'] as const;

const identityNames = new Set<string>(
  identity satisfies readonly Exclude<keyof ApiKey | keyof DeclaredKey, keyof KeyTerms>[],
);

/** All terms of a key as one text, in whatever order they and their settings are. */
function writeTerms(key: KeyTerms): string {
  return JSON.stringify(key, (_name, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const terms = Object.entries(value).filter(([name]) => !identityNames.has(name));
    return Object.fromEntries(terms.toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
