import type { Attempt, Mode, Outcome, RequestKind } from './consumption.ts';
import type { FinishReason, ProtocolViolation, Usage } from '../protocol/text.ts';
import type { Refusal } from '../shared/errors.ts';

/** One attempt at an upstream, as metrics and the log see it. */
export interface AttemptSummary extends Attempt {
  readonly cause: string | null;
  /** How the upstream broke its protocol. */
  readonly violations: readonly ProtocolViolation[];
}

/** One request, as metrics and the log see it when it is over. */
export interface ExchangeSummary {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly protocol: RequestKind;
  readonly mode: Mode;
  /** A configured name; `null` when the request ended before one was known. */
  readonly model: string | null;
  readonly upstream: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  readonly refusal: Refusal | null;
  /** What lies behind a failure, for the operator's eyes. */
  readonly cause: string | null;
  /** `null` for an answer that was not finished. */
  readonly finishReason: FinishReason | null;
  readonly usage: Usage | null;
  readonly stripped: readonly string[];
  /** What was sent upstream, in order. */
  readonly attempts: readonly AttemptSummary[];
  /** Whether the client had been sent a part of a stream. */
  readonly streamOpened: boolean;
  /** From arrival until the key's limits had let it in or not, its wait for a slot included; `null` without a key. */
  readonly admittedMs: number | null;
  /** How long it waited for one of its key's slots, in milliseconds. */
  readonly slotWaitMs: number;
  readonly queuedMs: number | null;
  readonly firstTextMs: number | null;
  /** How long the first text of a stream took from the upstream to the client, in milliseconds. */
  readonly handoverMs: number | null;
  /** From arrival until all but its settlement was done. */
  readonly totalMs: number;
  readonly chargeNanos: number;
  /** `null` when nothing is traced. */
  readonly traceId: string | null;
}
