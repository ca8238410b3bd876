import type { ManagedKey } from '../../http/present/managed-key.ts';
import { adminPath, callAdmin, findAdmin, inPath } from './admin-api.ts';

/** How many of the newest keys are asked for at once, where several names are wanted. */
const maxListed = 200;

/** How many of the other keys are asked for one by one; the rest are shown by their ids. */
const maxAskedAlone = 20;

/** The names of keys by their ids. */
export type KeyNames = ReadonlyMap<string, string>;

/** Reads the names of some keys: several in one request, and those that are not among the newest keys one by one. */
export async function readKeyNames(ids: readonly string[], signal: AbortSignal): Promise<KeyNames> {
  const wanted = new Set(ids);
  const names = new Map<string, string>();
  if (wanted.size > 1) {
    const { data } = await callAdmin<{ readonly data: readonly ManagedKey[] }>(
      adminPath('keys', { limit: maxListed }),
      { signal },
    );
    for (const { id, name } of data) if (wanted.has(id)) names.set(id, name);
  }
  const others = [...wanted].filter((id) => !names.has(id)).slice(0, maxAskedAlone);
  await Promise.all(
    others.map(async (id) => {
      // An address that was written by hand may have the id of no key.
      const key = await findAdmin<ManagedKey>(adminPath(`keys/${inPath(id)}`), signal);
      if (key !== null) names.set(id, key.name);
    }),
  );
  return names;
}
