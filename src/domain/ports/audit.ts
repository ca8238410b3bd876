import type { Actor, AuditEntry, AuditLine } from '../audit/audit-line.ts';
import type { Pause } from '../pause.ts';
import type { AccountHead } from '../statements/root.ts';

/** Which lines are listed: all that fit each of the given fields. Times are milliseconds since 1970. */
export interface AuditFilter {
  readonly fromMs?: number | undefined;
  /** Before this time. */
  readonly toMs?: number | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly keyId?: string | undefined;
  /** A part of what a line says, in upper or lower case. */
  readonly search?: string | undefined;
}

/** A page of lines, newest first; `next` is the number before which the following page begins. */
interface AuditPage {
  readonly lines: readonly AuditLine[];
  readonly next: number | null;
}

/** The audit of what operators do. What changes keys stores its lines itself, with what it changes. */
export interface AuditTrail {
  /** Stores lines of what was done or refused, in their order. */
  add(entries: readonly AuditEntry[]): Promise<void>;
  list(filter: AuditFilter, limit: number, before: number | null): Promise<AuditPage>;
  /**
   * Notes the settings of a config, as one text, where they are not those that were noted last, also by another process, with
   * a line of what differs. `compare` gets the text of the last ones, `null` for none.
   */
  noteConfig(
    actor: Actor,
    compare: (before: string | null) => { readonly after: string; readonly changes: AuditEntry['changes'] },
  ): Promise<void>;
}

/** A line with the hash of the chain up to it. */
export interface HashedLine extends AuditLine {
  readonly hash: string;
}

/** Where lines are written before they are removed: as `RecordArchive`. */
export interface AuditArchive {
  append(lines: readonly HashedLine[]): Promise<void>;
}

/** The chain of hashes over all lines. */
export interface AuditChain {
  /**
   * Seals the last line for a root, and some on the way to it; `null` where the last root has it. Rejects with a `ChainError`
   * where a line is missing.
   */
  head(pause: Pause): Promise<AccountHead | null>;
  /**
   * Removes the oldest lines, up to the last sealed one before which none is from a time on, each written to the archive before,
   * a bounded number at a time; resolves with how many. Rejects with a `ChainError` where lines were changed, which are left
   * with all behind them, and when `pause` does.
   */
  removeBefore(beforeMs: number, archive: AuditArchive | null, pause: Pause): Promise<number>;
}
