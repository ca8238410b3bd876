import { compareDeclarations } from '../domain/keys/declared-key.ts';
import type { DeclarationChanges, DeclarationReport, DeclaredKey } from '../domain/keys/declared-key.ts';
import { idFrom, keyEntropyBytes } from '../domain/keys/api-key.ts';
import type { DeclarationStore } from '../domain/ports/key-store.ts';
import { StorageError } from '../domain/storage-refusal.ts';

/** What storing declared keys needs. */
export interface DeclarationPorts {
  readonly store: DeclarationStore;
  readonly randomBytes: (count: number) => Uint8Array;
  /** A hash in hexadecimal, of 12 bytes or more. */
  readonly hash: (text: string) => string;
  readonly now: () => number;
}

/**
 * Makes the stored keys the declared ones: creates and changes keys, and revokes those that are declared no more. Writes
 * nothing where nothing differs. Returns what was changed, and the keys that were refused because their secret was
 * retired: a secret that leaked must not come back without a word. Rejects when the database fails.
 */
export async function declareKeys(
  declared: readonly DeclaredKey[],
  { store, randomBytes, hash, now }: DeclarationPorts,
): Promise<DeclarationReport> {
  const idsOf = (name: string) => ({ id: idOf(name, hash), spareId: idFrom(randomBytes(keyEntropyBytes)) });
  const compare = async () => compareDeclarations(await store.listDeclarations(declared), declared, idsOf);
  const { changed, removed, refused, lastLine } = await compare();
  const report = { changed: changed.map(({ declared: { name } }) => name), removed, refused };
  if (isEmpty({ changed, removed })) return { ...report, renamed: [], adopted: [], unfunded: [] };
  const moved = await store.storeDeclarations({ changed, removed, lastLine }, now());
  // Another process may have stored declarations of its own between the comparison and the unit.
  if (!isEmpty(await compare())) throw new StorageError('other declarations were stored at the same time');
  return { ...report, ...moved };
}

function isEmpty({ changed, removed }: DeclarationChanges): boolean {
  return changed.length === 0 && removed.length === 0;
}

/**
 * The id of a declared key. It follows from the name, so that the key has the same id in the logs and records of every
 * replica, and again after its database was lost.
 */
function idOf(name: string, hash: (text: string) => string): string {
  return idFrom(Buffer.from(hash(`declared key ${name}`), 'hex'));
}
