import { compareDeclarations } from '../domain/keys/declared-key.ts';
import type { DeclarationChanges, DeclaredKey } from '../domain/keys/declared-key.ts';
import { idFrom } from '../domain/keys/api-key.ts';
import type { DeclarationStore } from '../domain/ports/key-store.ts';
import { StorageError } from '../domain/storage-refusal.ts';

/** What storing declared keys needs. */
export interface DeclarationPorts {
  readonly store: DeclarationStore;
  /** A hash in hexadecimal, of 12 bytes or more. */
  readonly hash: (text: string) => string;
  readonly now: () => number;
}

/**
 * Makes the stored keys the declared ones: creates and changes keys, and revokes those that are declared no more. Writes
 * nothing where nothing differs. Returns what was changed. Rejects when the database fails.
 */
export async function declareKeys(
  declared: readonly DeclaredKey[],
  { store, hash, now }: DeclarationPorts,
): Promise<DeclarationChanges> {
  const compare = async (): Promise<DeclarationChanges> =>
    compareDeclarations(await store.listDeclarations(), declared, (name) => idOf(name, hash));
  const changes = await compare();
  if (isEmpty(changes)) return changes;
  await store.storeDeclarations(changes, now());
  // Another process may have stored declarations of its own between the comparison and the unit.
  if (!isEmpty(await compare())) throw new StorageError('other declarations were stored at the same time');
  return changes;
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
