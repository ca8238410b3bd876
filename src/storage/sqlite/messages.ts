import type { Row, Statement } from '../engine.ts';

/** What the worker is started with. */
export interface WorkerOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** `full` makes every commit survive a loss of power; `normal` survives a crash of the process. */
  readonly durability: 'normal' | 'full';
}

/** To the worker: a unit to run, or the wish to close once all units before it are done. */
export type WorkerRequest =
  | { readonly id: number; readonly unit: readonly Statement[] }
  | { readonly close: true };

/** From the worker: how opening went, how units went, or that the database is closed. */
export type WorkerReply =
  | { readonly opened: true }
  | { readonly failed: string }
  | { readonly results: readonly UnitResult[] }
  | { readonly closed: true };

export interface UnitResult {
  readonly id: number;
  readonly rows?: readonly (readonly Row[])[];
  readonly error?: string;
}
