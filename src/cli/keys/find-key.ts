import type { ManagedKey } from '../../http/present/managed-key.ts';
import { didYouMean } from '../did-you-mean.ts';
import { findAdmin, readList } from '../admin-client.ts';

/** Among how many keys a name is searched; with as many, older ones may have it, too, and commands need the id. */
const maxSearchedKeys = 10_000;

/** The path of a key in the admin API. */
export function keyPath(id: string): string {
  return `/admin/keys/${encodeURIComponent(id)}`;
}

/**
 * The id of the key that has this id, or else this name. Throws if no key has it, with the nearest name, and if several
 * keys have the name, or may have it because there are too many keys, with their ids: a command must not choose whose
 * balance it changes.
 */
export async function findKeyId(idOrName: string): Promise<string> {
  // Only ids begin so, and a name would be a useless look-up.
  if (idOrName.startsWith('key_') && (await readKey(idOrName)) !== null) return idOrName;
  const keys = await searchedKeys();
  const named = keys.filter(({ name }) => name === idOrName);
  const [only, another] = named;
  const isComplete = keys.length < maxSearchedKeys;
  if (only !== undefined && another === undefined && isComplete) return only.id;
  if (only !== undefined) {
    const found = isComplete
      ? `${named.length} keys are named ${idOrName}`
      : `only the newest ${maxSearchedKeys} keys were searched, and older ones may be named ${idOrName}, too`;
    throw new Error(`${found}; give the id of one of them: ${named.map(describeKey).join(', ')}`);
  }
  const searched = isComplete ? '' : ` among the newest ${maxSearchedKeys}`;
  const known = keys.flatMap(({ id, name }) => [name, id]);
  throw new Error(`no key${searched} has the id or name ${idOrName}${didYouMean(idOrName, known)}`);
}

/**
 * The ids of the keys of a group, revoked ones too. Throws if there are none, with the nearest group that has any, and where
 * there are more keys than are searched: the list could lack some.
 */
export async function findKeysOfGroup(group: string): Promise<readonly string[]> {
  const keys = await searchedKeys();
  if (keys.length >= maxSearchedKeys)
    throw new Error(
      `only the newest ${maxSearchedKeys} keys can be searched: name the keys of ${group} one by one`,
    );
  const found = keys.filter((key) => key.group === group);
  if (found.length > 0) return found.map(({ id }) => id);
  const known = keys.flatMap((key) => key.group ?? []);
  throw new Error(`no key is in the group ${group}${didYouMean(group, known)}`);
}

/** The newest keys, revoked ones too: a name is searched among them. */
export function searchedKeys(): Promise<readonly ManagedKey[]> {
  return readList('/admin/keys', '', maxSearchedKeys);
}

/** A key by its id; `null` if there is none. */
export function readKey(id: string): Promise<ManagedKey | null> {
  return findAdmin(keyPath(id));
}

/** For how many keys a list shows the name; beyond that it shows the id. */
const maxNamedKeys = 50;

/** The names of keys by their ids; keys beyond the first 50 have none here. */
export async function keyNames(ids: readonly (string | null)[]): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const id of [...new Set(ids)].filter((known) => known !== null).slice(0, maxNamedKeys)) {
    const key = await readKey(id);
    if (key !== null) names.set(id, key.name);
  }
  return names;
}

function describeKey({ id, revoked_at: revokedAt }: ManagedKey): string {
  return revokedAt === null ? id : `${id} (revoked)`;
}
