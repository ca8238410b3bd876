import type { FinishReason, ProtocolViolation, UpstreamError, Usage } from '../protocol/text.ts';
import type { Refusal, ErrorCode } from '../shared/errors.ts';
import type { Attempt, EndOutcome, Mode, RequestKind } from './money/consumption.ts';
import type { NoPermit } from './upstream-limiter/permit-refusal.ts';
import type { HedgeResult } from './routing/hedging.ts';

/** One attempt at an upstream, for metrics and the log. */
export interface AttemptSummary extends Attempt {
  /** How the upstream broke its protocol. */
  readonly violations: readonly ProtocolViolation[];
}

/** What became of a request's need for permits of upstreams with limits. */
export interface PermitSummary {
  /** The upstream of its last permit; `null` if it got none. */
  readonly upstream: string | null;
  /** Its model there if that has limits of its own. */
  readonly limitedModel: string | null;
  /** How long it waited before it was sent, and in all, in milliseconds. */
  readonly firstWaitMs: number;
  readonly waitMs: number;
  /** Why it was refused, and by the queues of which upstreams; `null` if it was not. */
  readonly refusal: Pick<NoPermit, 'kind' | 'upstreams' | 'models'> | null;
}

/** One finished request, for metrics, the log and traces. */
export interface ExchangeSummary {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly keyName: string | null;
  /** One of the key's tags; `null` for a request without one, or refused before it was read. */
  readonly tag: string | null;
  /** Whether an operator sent it, to try the key out. */
  readonly isTryOut: boolean;
  /** `null` where addresses are not logged. */
  readonly clientAddress: string | null;
  readonly protocol: RequestKind;
  readonly mode: Mode;
  /** A configured name; `null` when the request ended before one was known. */
  readonly model: string | null;
  /** The name that the client asked for, fit to be shown; `null` if no name was read. */
  readonly requestedModel: string | null;
  readonly upstream: string | null;
  readonly outcome: EndOutcome;
  /** The request whose answer the client got; `null` where that is its own. */
  readonly replayOf: string | null;
  readonly status: number;
  readonly refusal: Refusal | null;
  /** The cause of a failure, for the operator alone. */
  readonly cause: string | null;
  /** What the upstream said of it, whose failure the client got. */
  readonly upstreamError: UpstreamError | null;
  /** `null` for an answer that did not finish. */
  readonly finishReason: FinishReason | null;
  readonly usage: Usage | null;
  readonly stripped: readonly string[];
  /** The attempts at upstreams, in order. */
  readonly attempts: readonly AttemptSummary[];
  /** What became of a second request beside a slow one; `null` if none was due. */
  readonly hedge: HedgeResult | null;
  /** Whether a part of a stream was sent to the client. */
  readonly streamOpened: boolean;
  /** From arrival until the key's limits had decided, the wait for a slot included; `null` without a key. */
  readonly admittedMs: number | null;
  /** How long it took until there was a slot or none, in milliseconds, with the time to ask a shared database. */
  readonly limiterMs: number;
  /** How long the request waited in the queue for a slot, in milliseconds; 0 if it did not wait. */
  readonly slotWaitMs: number;
  readonly queuedMs: number | null;
  /** Its need for permits of upstreams with limits; `null` if none of its upstreams has a limit. */
  readonly permits: PermitSummary | null;
  readonly firstTextMs: number | null;
  /** How long the first text of a stream took from the upstream to the client, in milliseconds. */
  readonly handoverMs: number | null;
  /** From arrival until just before the settlement. */
  readonly totalMs: number;
  readonly chargeNanos: number;
  /** `null` when tracing is off. */
  readonly traceId: string | null;
}

/** The error code in the client's answer; `null` for a client that disconnected and got none. */
export function codeOf({ outcome, refusal }: Pick<ExchangeSummary, 'outcome' | 'refusal'>): ErrorCode | null {
  return outcome === 'client_closed' ? null : (refusal?.code ?? null);
}
