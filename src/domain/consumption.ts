import type { Protocol, Usage } from '../protocol/text.ts';

/** Every way in which a request can end; the closed set behind the `outcome` of records and metrics. */
export type Outcome =
  | 'completed'
  | 'incomplete'
  | 'refused'
  | 'upstream_failed'
  | 'upstream_truncated'
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  | 'client_closed'
  | 'cancelled'
  | 'drained'
  | 'lost'
  | 'server_error';

export type Mode = 'sync' | 'stream';

/** The consumption record's first half, written when a request is dispatched. */
export interface OpenedRecord {
  readonly requestId: string;
  readonly keyId: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly protocol: Protocol;
  readonly mode: Mode;
  readonly model: string;
  readonly upstream: string;
  /** Milliseconds from arrival to dispatch. */
  readonly queuedMs: number;
}

/** The second half, written before the client sees the end. */
export interface SettledRecord {
  readonly requestId: string;
  readonly outcome: Outcome;
  /** The HTTP status that the client got; 499 when it left before it got one. */
  readonly status: number;
  readonly usage: Usage | null;
  readonly usageSource: 'upstream' | 'none';
  /** Milliseconds from arrival to the first text; `null` when none came. */
  readonly firstByteMs: number | null;
  readonly totalMs: number;
}
