import type { ErrorCode } from '../shared/errors.ts';
import type { TraceHeaders, UpstreamFault } from '../domain/ports.ts';
import type { Route } from '../domain/routing.ts';
import type { AttemptResult } from '../domain/upstream-health.ts';
import type { ProtocolViolation } from '../protocol/text.ts';
import type { AnswerPart } from './answer-parts.ts';
import type { FailedEnding } from './endings.ts';
import type { Exchange, Ports } from './exchange.ts';

/** An attempt that came to nothing before its first good event. */
export interface FailedAttempt {
  readonly result: AttemptResult;
  readonly ending: FailedEnding;
}

/** Keeps the record of one attempt, and tells its upstream's health how it goes. */
export interface WatchedAttempt {
  /** On the monotonic clock. */
  readonly startedMs: number;
  /** Goes with the call. */
  readonly trace: TraceHeaders;
  /** Hands in the set that fills while the answer is read. */
  reads(violations: ReadonlySet<ProtocolViolation>): void;
  /** The first good event has come. */
  opened(): void;
  /** Looks at a part of the answer for its ending. */
  sees(part: AnswerPart): void;
  /** `sign` is what tells more than the ending: an HTTP status, or the connection's fault. */
  failed(ending: FailedEnding, sign: number | UpstreamFault['fault'] | null): FailedAttempt;
}

export function watchAttempt(
  { upstream, model }: Route,
  exchange: Exchange,
  { clock, health }: Ports,
): WatchedAttempt {
  const startedMs = clock.monotonicMs();
  const watched = health.began(upstream);
  const note: Exchange['notes']['attempts'][number] = {
    upstream,
    model,
    result: 'interrupted',
    durationMs: 0,
    cause: null,
    violations: new Set(),
  };
  exchange.notes.attempts.push(note);
  const failed: WatchedAttempt['failed'] = (ending, sign) => {
    const result = resultOf(ending, sign);
    Object.assign(note, { result, durationMs: clock.monotonicMs() - startedMs, cause: ending.cause ?? null });
    watched.ended(result, ending.refusal.retryAfterMs);
    return { result, ending };
  };
  return {
    startedMs,
    trace: exchange.trace.attempt(),
    reads: (violations) => void (note.violations = violations),
    opened() {
      note.result = 'ok';
      watched.ended('ok', null);
    },
    sees({ ending }) {
      if (ending === null) return;
      if ('refusal' in ending) failed(ending, null);
      else note.durationMs = clock.monotonicMs() - startedMs;
    },
    failed,
  };
}

/** What the refusals that come of an upstream's fault say of the attempt; all others say that the request is at fault. */
const resultByCode: Readonly<Partial<Record<ErrorCode, AttemptResult>>> = {
  upstream_rate_limited: 'rate_limited',
  overloaded: 'overloaded',
  upstream_auth: 'auth',
  upstream_timeout: 'timeout',
  upstream_unavailable: 'unreachable',
  upstream_truncated: 'truncated',
  upstream_invalid: 'invalid',
  upstream_error: 'error',
  server_error: 'interrupted',
  draining: 'interrupted',
};

/** A 503 may mean anything between full and gone, so it counts as a failure; a 529 means only that it is full. */
function resultOf({ refusal }: FailedEnding, sign: number | UpstreamFault['fault'] | null): AttemptResult {
  if (sign === 'stale') return sign;
  return sign === 503 ? 'error' : (resultByCode[refusal.code] ?? 'refused');
}
