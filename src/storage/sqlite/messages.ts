import type { Results, Statement } from '../engine.ts';
import type { FileIds } from './file-ids.ts';

/** What a database thread is started with. */
export interface ThreadOptions {
  /** `writer` owns the file and changes it; `reader` only reads; `copier` writes one copy and ends. */
  readonly role: 'writer' | 'reader' | 'copier';
  /** A file by its real path, or `:memory:`. */
  readonly path: string;
  /** The path as the operator knows it, for messages. */
  readonly name: string;
  /** `full` makes every commit survive a loss of power; `normal` survives a crash of the process. */
  readonly durability: 'normal' | 'full';
  /** Where a copier writes to: a file that is empty. */
  readonly target?: string;
}

/** To a thread: a unit to run, the lock file to be locked again, or the wish to close once all before it is done. */
export type ThreadRequest =
  | { readonly id: number; readonly unit: readonly Statement[] }
  | { readonly relock: true }
  /** `rescue` has the database written to a new file first: its own was deleted or replaced. */
  | { readonly close: true; readonly rescue: boolean };

/** From a thread: how opening, units, locking and closing went. A copier is `opened` when its copy is complete. */
export type ThreadReply =
  | { readonly opened: true; readonly files: FileIds | null }
  | { readonly failed: string }
  | { readonly results: readonly UnitResult[] }
  | { readonly relocked: FileIds | string }
  | { readonly closed: true; readonly rescued: string | null; readonly error: string | null };

export interface UnitResult {
  readonly id: number;
  readonly rows?: Results;
  readonly error?: string;
  /** SQLite's extended result code, where it was SQLite that failed. */
  readonly code?: number;
}
