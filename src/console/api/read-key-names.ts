import { AdminError, adminPath, callAdmin, inPath } from './admin-api.ts';

/** How many of the newest keys are asked for at once, where several names are wanted. */
const maxListed = 200;

/** How many of the other keys are asked for one by one; the rest are shown by their ids. */
const maxAskedAlone = 20;

/** The names of keys by their ids. */
export type KeyNames = ReadonlyMap<string, string>;

interface NamedKey {
  readonly id: string;
  readonly name: string;
}

/** Reads the names of some keys: several in one request, and those that are not among the newest keys one by one. */
export async function readKeyNames(ids: readonly string[], signal: AbortSignal): Promise<KeyNames> {
  const wanted = new Set(ids);
  const names = new Map<string, string>();
  if (wanted.size > 1) {
    const { data } = await callAdmin<{ readonly data: readonly NamedKey[] }>(
      adminPath('keys', { limit: maxListed }),
      { signal },
    );
    for (const { id, name } of data) if (wanted.has(id)) names.set(id, name);
  }
  const others = [...wanted].filter((id) => !names.has(id)).slice(0, maxAskedAlone);
  await Promise.all(
    others.map(async (id) => {
      const name = await readName(id, signal);
      if (name !== null) names.set(id, name);
    }),
  );
  return names;
}

/** The name of one key; `null` for one that there is not, as in an address that was written by hand. */
async function readName(id: string, signal: AbortSignal): Promise<string | null> {
  try {
    return (await callAdmin<NamedKey>(adminPath(`keys/${inPath(id)}`), { signal })).name;
  } catch (error) {
    if (error instanceof AdminError && error.status === 404) return null;
    throw error;
  }
}
