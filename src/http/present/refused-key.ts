import type { RefusedKey } from '../../domain/ports/refusals.ts';

/** A key whose requests this gateway's own limits refused, as operators see it; `names` has the keys that are stored. */
export function presentRefusedKey(
  { keyId, requests, byLimit }: RefusedKey,
  names: ReadonlyMap<string, string>,
) {
  return { key_id: keyId, key_name: names.get(keyId) ?? null, requests, by_limit: byLimit };
}
