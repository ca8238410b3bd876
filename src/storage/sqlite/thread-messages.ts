import type { FileIds } from '../database-files.ts';
import type { FixedUnitName, ResultRow, Results, SqlValue, Statement } from '../engine.ts';
import type { FileChange } from './write-ahead-log.ts';

/** What a database thread is started with. */
export interface ThreadOptions {
  /**
   * `writer` owns the file and changes it; `reader` only reads; `copier` writes one copy and ends, `checker` looks for
   * damage.
   */
  readonly role: 'writer' | 'reader' | 'copier' | 'checker';
  /** A file by its real path, or `:memory:`. */
  readonly path: string;
  /** The path as it is configured, for messages. */
  readonly name: string;
  /** `full` makes every commit survive a loss of power; `normal` survives a crash of the process. */
  readonly durability: 'normal' | 'full';
  /** Whether a database that was copied to PostgreSQL is opened all the same. */
  readonly allowMigrated?: boolean;
  /** Where a copier writes to: a file that is empty. */
  readonly target?: string;
  /** Counts what was posted to the thread, which sleeps on it; without one it is served by its event loop. */
  readonly posts?: Int32Array;
}

/** A unit of any statements, or a fixed unit by its name with its values. */
export type Unit =
  | { readonly kind: 'statements'; readonly statements: readonly Statement[] }
  | { readonly kind: 'fixed'; readonly name: FixedUnitName; readonly values: readonly SqlValue[] };

/** To a thread: the units of one turn of the event loop, in their order. */
export interface UnitsRequest {
  readonly kind: 'units';
  /** The number of the first one; those of the others follow. */
  readonly first: number;
  /** The time at which they were sent, in milliseconds since 1970. */
  readonly nowMs: number;
  readonly units: readonly Unit[];
}

/** To a thread. `close` ends it once everything before is done. */
export type ThreadRequest =
  | UnitsRequest
  /** Locks the file that is at the lock's path now. */
  | { readonly kind: 'relock' }
  /** Asks the writer whether its files were changed by something else. */
  | { readonly kind: 'look' }
  /** Has the writer take the database's file as it is. */
  | { readonly kind: 'accept' }
  /** Tells the writer that a backup begins or has ended. */
  | { readonly kind: 'copying'; readonly isCopying: boolean }
  /** `rescue` writes the database to a new file first: its own was deleted or replaced. */
  | { readonly kind: 'close'; readonly rescue: boolean };

/** From a thread. A copier is `opened` when its copy is complete, a checker when the file is sound. */
export type ThreadReply =
  | { readonly kind: 'opened'; readonly files: FileIds | null }
  | { readonly kind: 'failed'; readonly reason: string }
  /** The results of some units that were handed in one after the other. */
  | { readonly kind: 'results'; readonly first: number; readonly results: readonly UnitResult[] }
  /** The files as they are now, or why the lock file could not be locked. */
  | { readonly kind: 'relocked'; readonly relocked: FileIds | string }
  /** What something else has done to the database's file, found at a look or before the log was folded. */
  | { readonly kind: 'changed'; readonly change: Exclude<FileChange, 'none'> }
  | { readonly kind: 'closed'; readonly rescued: string | null; readonly error: string | null };

/** What a unit resulted in: the rows of its statements, or the row of a fixed unit. */
export type UnitRows = Results | ResultRow;

/** How one unit went. */
export type UnitResult =
  | { readonly kind: 'done'; readonly done: UnitRows }
  | ({ readonly kind: 'failed' } & UnitFailure);

/** Why a unit failed. */
export interface UnitFailure {
  readonly error: string;
  /** SQLite's extended result code, where it was SQLite that failed. */
  readonly code?: number;
}
