import type { KeyStore } from '../domain/ports/key-store.ts';
import type { Retention } from '../domain/ports/retention.ts';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isoTime } from './present/iso-time.ts';

/** The refusal of a filter by a key that is none: an empty list would look like a key without requests. `null` for any other. */
export async function findUnknownKey(
  id: string | undefined,
  { namesOf }: Pick<KeyStore, 'namesOf'>,
): Promise<Refusal | null> {
  if (id === undefined || (await namesOf([id])).has(id)) return null;
  return refuse('key_not_found', 'No key has this id. The list of keys has all of them.', { param: 'key' });
}

/** The refusal of a request's id that no record has, which also says from when records were removed. */
export async function unknownRequest(
  message: string,
  { removedBefore }: Pick<Retention, 'removedBefore'>,
): Promise<Refusal> {
  const beforeMs = await removedBefore();
  const removed =
    beforeMs === null ? '' : ` Records of requests from before ${isoTime(beforeMs)} were removed.`;
  return refuse('request_not_found', message + removed);
}

/** The answer to a cancellation: a refusal for a request that is over, or never ran. */
export function presentCancellation(requestId: string, wasRunning: boolean) {
  if (wasRunning) return { request_id: requestId, cancelled: true as const };
  return refuse('request_not_found', 'No request with this id is running.');
}
