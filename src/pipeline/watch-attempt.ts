import { failures } from '../domain/failure.ts';
import type { HealthSign } from '../domain/failure.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { TraceHeaders } from '../domain/ports/telemetry.ts';
import type { Route } from '../domain/routing.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { ProtocolViolation } from '../protocol/text.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import { wordsOf } from './results.ts';
import type { AttemptEnding } from './results.ts';

/** Keeps the log of one attempt, and reports its result to the upstream's health. */
export class AttemptWatch {
  readonly logged: LoggedAttempt;
  /** The trace headers of the call. */
  readonly trace: TraceHeaders;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #report: ReturnType<UpstreamHealth['began']>;
  /** A timeout in the time left over by earlier attempts is not held against this upstream. */
  readonly #hasLessTime: boolean;

  /** Begins the log entry and the health report; `leftMs` is the rest of the request's total time. */
  constructor(
    { upstream, model, totalMs }: Route,
    leftMs: number,
    attempts: AttemptLog,
    { arrivedMs, trace }: Exchange,
    { clock, health }: Ports,
  ) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#report = health.began(upstream);
    this.#hasLessTime = !attempts.isEmpty && leftMs < totalMs;
    this.logged = attempts.begin(upstream, model, this.#startedMs - arrivedMs);
    this.trace = trace.attempt();
  }

  /** Sets the violations, a set that fills while the answer is read. */
  reads(violations: ReadonlySet<ProtocolViolation>): void {
    this.logged.violations = violations;
  }

  /** Notes that the first good part has arrived. */
  opened(): void {
    this.logged.result = 'ok';
    this.#report.opened();
  }

  /** Notes how the attempt ended, once. */
  ended(ending: AttemptEnding): void {
    const { logged } = this;
    const { result, sign } = judge(ending, this.#hasLessTime);
    const { cause, upstreamError } = wordsOf(ending);
    logged.result = result;
    logged.durationMs = this.#clock.monotonicMs() - this.#startedMs;
    logged.usage = ending.usage;
    logged.cause = cause;
    logged.upstreamError = upstreamError;
    this.#report.ended(sign, ending.kind === 'failed' ? ending.failure.retryAfterMs : null, cause);
  }
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
