import { failures } from '../domain/failure.ts';
import type { HealthSign } from '../domain/failure.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { Route } from '../domain/routing.ts';
import type { ProtocolViolation } from '../protocol/text.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { wordsOf } from './results.ts';
import type { AttemptEnding } from './results.ts';

/** Keeps the log of one attempt, and reports its result to the upstream's health. */
export interface AttemptWatch {
  readonly logged: LoggedAttempt;
  /** The trace headers of the call. */
  readonly trace: TraceHeaders;
  /** Sets the violations, a set that fills while the answer is read. */
  reads(violations: ReadonlySet<ProtocolViolation>): void;
  /** Notes that the first good part has arrived. */
  opened(): void;
  /** Notes how the attempt ended, once. */
  ended(ending: AttemptEnding): void;
}

/** Begins an attempt's log entry and health report; `leftMs` is the rest of the request's total time. */
export function watchAttempt(
  { upstream, model, totalMs }: Route,
  leftMs: number,
  attempts: AttemptLog,
  { arrivedMs, trace }: Exchange,
  { clock, health }: Ports,
): AttemptWatch {
  const startedMs = clock.monotonicMs();
  const report = health.began(upstream);
  // A timeout in the time left over by earlier attempts is not held against this upstream.
  const hasLessTime = !attempts.isEmpty && leftMs < totalMs;
  const logged = attempts.begin(upstream, model, startedMs - arrivedMs);
  return {
    logged,
    trace: trace.attempt(),
    reads: (violations) => void (logged.violations = violations),
    opened() {
      logged.result = 'ok';
      report.opened();
    },
    ended(ending) {
      const { result, sign } = judge(ending, hasLessTime);
      const durationMs = clock.monotonicMs() - startedMs;
      const words = wordsOf(ending);
      Object.assign(logged, { result, durationMs, usage: ending.usage, ...words });
      report.ended(sign, ending.kind === 'failed' ? ending.failure.retryAfterMs : null, words.cause);
    },
  };
}

function judge(
  ending: AttemptEnding,
  hasLessTime: boolean,
): { readonly result: AttemptResult; readonly sign: HealthSign } {
  if (ending.kind === 'finished') return { result: 'ok', sign: 'success' };
  if (ending.kind === 'interrupted') return { result: 'interrupted', sign: 'unknown' };
  const { kind, fromMessage } = ending.failure;
  const { result, health } = failures[kind];
  if (fromMessage === true) return { result, sign: 'nothing' };
  return { result, sign: kind === 'total_timeout' && hasLessTime ? 'unknown' : health };
}
