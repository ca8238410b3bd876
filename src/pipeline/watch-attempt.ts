import type { ErrorCode } from '../shared/errors.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import type { Route } from '../domain/routing.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
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
  /** `sign` is what tells more than the ending: the head of the answer, or the connection's fault. */
  failed(ending: FailedEnding, sign: Sign | null): FailedAttempt;
}

type Sign = Pick<UpstreamAnswer, 'status' | 'retryAfterMs'> | UpstreamFault;

/** Begins to watch; `leftMs` is what is left of the request's time. */
export function watchAttempt(
  { upstream, model, totalMs }: Route,
  leftMs: number,
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
    usage: null,
    cause: null,
    violations: new Set(),
  };
  const isFirst = exchange.notes.attempts.length === 0;
  exchange.notes.attempts.push(note);
  const failed: WatchedAttempt['failed'] = (ending, sign) => {
    const result = resultOf(ending, sign);
    const { usage, cause = null } = ending;
    Object.assign(note, { result, durationMs: clock.monotonicMs() - startedMs, usage, cause });
    // Who got only what others had left of the time has not shown that it is slow.
    const isUnfair = ending.outcome === 'total_timeout' && !isFirst && leftMs < totalMs;
    const retryAfterMs = sign !== null && 'status' in sign ? sign.retryAfterMs : null;
    watched.ended(isUnfair ? 'interrupted' : result, retryAfterMs);
    return { result, ending };
  };
  return {
    startedMs,
    trace: exchange.trace.attempt(),
    reads: (violations) => void (note.violations = violations),
    opened() {
      note.result = 'ok';
      watched.opened();
    },
    sees({ ending }) {
      if (ending === null) return;
      if ('refusal' in ending) return void failed(ending, null);
      note.durationMs = clock.monotonicMs() - startedMs;
      note.usage = ending.finish.usage;
      watched.ended('ok', null);
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
function resultOf({ refusal }: FailedEnding, sign: Sign | null): AttemptResult {
  if (sign !== null && 'fault' in sign && sign.fault === 'stale') return 'stale';
  const status = sign !== null && 'status' in sign ? sign.status : null;
  if (status === 503) return 'error';
  const result = resultByCode[refusal.code] ?? 'refused';
  return result === 'error' && status !== null && status < 500 ? 'unserved' : result;
}
