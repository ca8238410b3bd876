import type { KeyStore } from '../domain/ports/key-store.ts';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** The refusal of a filter by a key that is none: an empty list would look like a key without requests. `null` for any other. */
export async function findUnknownKey(
  id: string | undefined,
  { namesOf }: Pick<KeyStore, 'namesOf'>,
): Promise<Refusal | null> {
  if (id === undefined || (await namesOf([id])).has(id)) return null;
  return refuse('key_not_found', 'No key has this id. The list of keys has all of them.', { param: 'key' });
}
