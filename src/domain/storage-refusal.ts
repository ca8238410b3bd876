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

/** Why a database failed, in words that name no file. */
const reasons = {
  unavailable: 'it is not open',
  full: 'its disk is full',
  locked: 'another process holds its lock',
  slow: 'it takes too long to answer',
  read_only: 'its file is read-only',
  io: 'its file could not be read or written',
  /** It answered, and refuses this unit for what is in it: the same unit fails again. */
  rejected: 'it rejects what is written',
  unknown: 'the log says why',
} as const;

export type StorageReason = keyof typeof reasons;

export function describeReason(reason: StorageReason): string {
  return reasons[reason];
}

/** A database that failed. Whoever answers for it turns it into `storageUnavailable`. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  readonly reason: StorageReason;

  constructor(message: string, reason: StorageReason = 'unavailable') {
    super(message);
    this.reason = reason;
  }

  /** Whether the same unit would fail for ever; otherwise it may be offered again. */
  get isPermanent(): boolean {
    return this.reason === 'rejected';
  }
}
