import type { Results, Statement } from '../engine.ts';
import type { FileIds } from './file-ids.ts';

/** What a database thread is started with. */
export interface ThreadOptions {
  /** `writer` owns the file and changes it; `reader` only reads; `copier` writes one copy and ends. */
  readonly role: 'writer' | 'reader' | 'copier';
  /** A file by its real path, or `:memory:`. */
  readonly path: string;
  /** The path as it is configured, for messages. */
  readonly name: string;
  /** `full` makes every commit survive a loss of power; `normal` survives a crash of the process. */
  readonly durability: 'normal' | 'full';
  /** Where a copier writes to: a file that is empty. */
  readonly target?: string;
}

/** To a thread: a unit to run. */
export interface NumberedUnit {
  readonly kind: 'unit';
  /** The number by which its result is known. */
  readonly id: number;
  readonly unit: readonly Statement[];
}

/** To a thread. `close` ends it once everything before is done. */
export type ThreadRequest =
  | NumberedUnit
  /** Locks the file that is at the lock's path now. */
  | { readonly kind: 'relock' }
  /** `rescue` writes the database to a new file first: its own was deleted or replaced. */
  | { readonly kind: 'close'; readonly rescue: boolean };

/** From a thread. A copier is `opened` when its copy is complete. */
export type ThreadReply =
  | { readonly kind: 'opened'; readonly files: FileIds | null }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'results'; readonly results: readonly UnitResult[] }
  /** The files as they are now, or why the lock file could not be locked. */
  | { readonly kind: 'relocked'; readonly relocked: FileIds | string }
  | { readonly kind: 'closed'; readonly rescued: string | null; readonly error: string | null };

/** How one unit went. */
export type UnitResult =
  | { readonly kind: 'done'; readonly id: number; readonly rows: Results }
  | ({ readonly kind: 'failed'; readonly id: number } & UnitFailure);

/** Why a unit failed. */
export interface UnitFailure {
  readonly error: string;
  /** SQLite's extended result code, where it was SQLite that failed. */
  readonly code?: number;
}
