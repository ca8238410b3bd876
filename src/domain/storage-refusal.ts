import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** When a caller may try again after the database failed, in milliseconds. */
const retryMs = 5_000;

/** What callers are told when the database can't be read or written; the log says why. */
export function storageUnavailable(): Refusal {
  return refuse(
    'storage_unavailable',
    'The service cannot reach its database right now. Try again shortly.',
    {
      retryAfterMs: retryMs,
    },
  );
}

/** A database that failed. Whoever answers for it turns it into `storageUnavailable`. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
}
