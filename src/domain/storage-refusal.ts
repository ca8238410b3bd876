import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** The retry-after of such a refusal, in milliseconds. */
const retryMs = 5_000;

/** The refusal of a request whose database can't be read or written; the log has the reason. */
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
  /** The gateway itself closed it, as at its shutdown. */
  closed: 'it is closed',
  full: 'its disk is full',
  locked: 'another process or session holds a lock in it',
  slow: 'it takes too long to answer',
  read_only: 'it is read-only',
  io: 'its files could not be read or written',
  damaged: 'its file is damaged: restore a backup',
  /** It answered, and rejects this unit for its values: the same unit fails again. */
  rejected: 'it rejects what is written',
  unknown: 'the log says why',
} as const;

export type StorageReason = keyof typeof reasons;

export function describeReason(reason: StorageReason): string {
  return reasons[reason];
}

/** A failure of the database. The stage that answers the request turns it into a refusal by `refuseIfAway`. */
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

/** Another session has locked the rows of one key or account: the database makes the units of others meanwhile. */
export class KeyLockedError extends StorageError {
  /** Whether the database has answered so; otherwise the unit was refused without asking it. */
  readonly isAnswer: boolean;

  constructor(message: string, isAnswer: boolean) {
    super(message, 'locked');
    this.isAnswer = isAnswer;
  }
}

/** Handles what was thrown while a request was answered: a database that is away refuses it, and any other error is thrown on. */
export function refuseIfAway(error: unknown): Refusal {
  if (error instanceof StorageError) return storageUnavailable();
  throw error;
}
