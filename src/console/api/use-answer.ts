import { callAdmin } from './admin-api.ts';
import { useLoaded } from './use-loaded.ts';
import type { Asked } from './use-loaded.ts';

/** Asks a path of the admin API, and again whenever the path changes; `null` asks nothing. */
export function useAnswer<Answer>(path: string | null): Asked<Answer> {
  return useLoaded<Answer>(path, (signal) => callAdmin<Answer>(path ?? '', { signal }));
}
