import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';

/** What is shown of a key beside its requests. */
export interface ManagedKey {
  readonly name: string;
  readonly limits: {
    readonly concurrency: number;
    readonly requests_per_minute: number;
    readonly queue_wait_ms: number;
  };
}

/** For how many keys the names are asked; others are shown by their ids. */
const maxAsked = 50;

const known = new Map<string, string>();

/** The names of some keys, as far as they can be read. */
export function useKeyNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const missing = [...new Set(ids)].filter((id) => !known.has(id)).slice(0, maxAsked);
  useLoaded(missing.length === 0 ? null : missing.join(' '), (signal) =>
    Promise.all(
      missing.map(async (id) => {
        const key = await callAdmin<ManagedKey>(adminPath(`keys/${encodeURIComponent(id)}`), { signal });
        known.set(id, key.name);
      }),
    ),
  );
  return known;
}
