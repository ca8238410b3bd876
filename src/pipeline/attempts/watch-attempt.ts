import { reachOf, failures } from '../../domain/upstreams/failure.ts';
import type { HealthSign } from '../../domain/upstreams/failure.ts';
import type { AttemptResult } from '../../domain/money/consumption.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { RequestTokens } from '../../domain/ports/upstream-limiters.ts';
import type { Trace, TraceHeaders } from '../../domain/ports/telemetry.ts';
import type { UpstreamAnswer } from '../../domain/ports/upstreams.ts';
import type { Route } from '../../domain/routing.ts';
import type { MeasuredAttempt } from '../../domain/routing/route-measure.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import type { ProtocolViolation, Usage } from '../../protocol/text.ts';
import type { AttemptLog, LoggedAttempt } from './attempt-log.ts';
import type { Race } from './attempt-stop.ts';
import { nothingUsed } from '../permits/held-permit.ts';
import type { HeldPermit } from '../permits/held-permit.ts';
import { wordsOf } from '../results.ts';
import type { AttemptEnding } from '../results.ts';

/** Where an attempt goes, and what it may use. */
export interface WatchedTerms {
  readonly route: Route;
  /** Whose request it is; `null` where what one key causes need not be told from the rest. */
  readonly keyId: string | null;
  /** The permit at the route's upstream; `null` where that has no limits. */
  readonly permit: HeldPermit | null;
  /** The rest of the request's total time, in milliseconds. */
  readonly leftMs: number;
  readonly attempts: AttemptLog;
  /** The race that it takes part in; `null` if no other attempt may run beside it. */
  readonly race: Race | null;
}

/** The most tokens that a question can have, and its messages. */
interface QuestionSize {
  readonly mostTokens: number;
  readonly turns: number;
}

/**
 * Keeps the log of one attempt, reports its result to the upstream's health and the route's measure, and releases its permit.
 */
export class AttemptWatch {
  readonly route: Route;
  readonly logged: LoggedAttempt;
  /** The trace headers of the call. */
  readonly trace: TraceHeaders;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #report: ReturnType<UpstreamHealth['began']>;
  readonly #measured: MeasuredAttempt | null;
  /** A timeout in the time left over by earlier attempts is not held against this upstream. */
  readonly #hasLessTime: boolean;
  readonly #attempts: AttemptLog;
  /** Whether another attempt was faster, which is the result whatever ends this one. */
  #isLost = false;
  readonly #permit: HeldPermit | null;
  /** Whether the permit is kept if the connection was stale: the same route is tried again at once then. */
  readonly #keepsPlace: boolean;
  #answer: UpstreamAnswer | null = null;
  #question: QuestionSize | null = null;

  /** Begins the log entry and the health report. */
  constructor(
    { route, keyId, permit, leftMs, attempts, race }: WatchedTerms,
    { arrivedMs, trace }: { readonly arrivedMs: number; readonly trace: Pick<Trace, 'attempt'> },
    { clock, health }: { readonly clock: Clock; readonly health: UpstreamHealth },
  ) {
    const { upstream, model, totalMs, measure } = route;
    this.route = route;
    this.#permit = permit;
    permit?.sent();
    this.#keepsPlace = race === null;
    this.#clock = clock;
    this.#attempts = attempts;
    this.#startedMs = clock.monotonicMs();
    this.#report = health.began(route, keyId);
    this.#measured = measure === null ? null : measure.began(this.#startedMs);
    this.#hasLessTime = attempts.count > 0 && leftMs < totalMs;
    this.logged = attempts.begin(upstream, model, this.#startedMs - arrivedMs);
    this.trace = trace.attempt();
  }

  /** Notes the head of the answer. */
  answered(answer: UpstreamAnswer): void {
    this.#answer = answer;
    this.#permit?.answered(answer);
  }

  /** Sets the violations, a set that fills while the answer is read, and the size of the question. */
  reads(violations: ReadonlySet<ProtocolViolation>, question: QuestionSize): void {
    this.logged.violations = violations;
    this.#question = question;
  }

  /** Notes that the first good part has arrived: this attempt's answer goes to the client. */
  opened(): void {
    this.logged.result = 'ok';
    this.#attempts.report(this.logged);
    this.#report.opened();
    if (this.#measured !== null) this.#measured.opened(this.#clock.monotonicMs());
  }

  /** Notes that the rest of the answer is dropped: without an ending, it would count as in progress for ever. */
  dropped(): void {
    if (this.#measured !== null) this.#measured.ended(this.#clock.monotonicMs(), false);
    this.#permit?.release(null, this.#answer);
  }

  /** Notes that another attempt had text first; `usage` is what was reported by then. It says nothing of the upstream. */
  lost(usage: Usage | null): void {
    this.#isLost = true;
    this.logged.result = 'hedge_lost';
    this.logged.durationMs = this.#clock.monotonicMs() - this.#startedMs;
    this.logged.usage = usage;
    this.#report.ended('unknown', null);
    this.dropped();
  }

  /** Notes how the attempt ended, once. */
  ended(ending: AttemptEnding): void {
    if (this.#isLost) return;
    const { logged } = this;
    const { result, sign } = judge(ending, this.#hasLessTime);
    const { cause, upstreamError } = wordsOf(ending);
    logged.result = result;
    logged.durationMs = this.#clock.monotonicMs() - this.#startedMs;
    logged.usage = ending.usage;
    this.#measureHidden(ending);
    logged.cause = cause;
    logged.upstreamError = upstreamError;
    if (ending.kind === 'failed')
      this.#report.ended(sign, ending.failure.retryAfterMs, cause, reachOf(ending.failure, this.route.model));
    else this.#report.ended(sign, null);
    if (this.#measured !== null) this.#measured.ended(this.#clock.monotonicMs(), isRoutesFault(ending, sign));
    // The next attempt would have to wait anew.
    if (this.#keepsPlace && ending.kind === 'failed' && ending.failure.kind === 'stale') return;
    this.#permit?.release(usedBy(ending, this.#answer), this.#answer);
  }

  /** Shows the route's hidden prompt the input that a whole answer reported. */
  #measureHidden({ kind, usage }: AttemptEnding): void {
    if (kind !== 'finished' || usage === null || this.#question === null) return;
    this.route.hidden?.saw({ ...this.#question, inputTokens: usage.inputTokens });
  }
}

/** What an attempt used of the upstream's tokens; `null` where that is unknown. */
function usedBy(ending: AttemptEnding, answer: UpstreamAnswer | null): RequestTokens | null {
  const { usage } = ending;
  if (usage !== null) return { input: usage.inputTokens, output: usage.outputTokens };
  const isRefused = answer !== null && answer.status >= 300;
  const result = ending.kind === 'failed' ? failures[ending.failure.kind].result : null;
  return isRefused || result === 'unreachable' || result === 'stale' ? nothingUsed : null;
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

/** Whether an attempt failed by its route: not by its request, or by what may be the request's own words. */
function isRoutesFault(ending: AttemptEnding, sign: HealthSign): boolean {
  return ending.kind === 'failed' && ending.failure.fromMessage !== true && faultSigns.has(sign);
}

/** A route that does not serve the model counts neither for nor against its upstream, but comes last. */
const faultSigns: ReadonlySet<HealthSign> = new Set(['failure', 'busy', 'nothing']);
