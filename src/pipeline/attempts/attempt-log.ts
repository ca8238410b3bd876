import type { ProtocolViolation, UpstreamError, Usage } from '../../protocol/text.ts';
import type { AttemptResult, Attempt } from '../../domain/money/consumption.ts';
import type { HedgeResult } from '../../domain/routing/hedging.ts';
import type { AttemptSummary } from '../../domain/exchange-summary.ts';

/** One attempt at an upstream, with its state so far. */
export interface LoggedAttempt extends Attempt {
  result: AttemptResult;
  durationMs: number;
  usage: Usage | null;
  cause: string | null;
  upstreamError: UpstreamError | null;
  /** How the upstream broke its protocol in the part of the answer that has been read. */
  violations: ReadonlySet<ProtocolViolation>;
}

const noViolations: ReadonlySet<ProtocolViolation> = new Set();

/** What was sent upstream for one request, in order. */
export class AttemptLog {
  readonly #attempts: LoggedAttempt[] = [];
  #reported: LoggedAttempt | null = null;
  /** What became of a second request beside a slow one; `null` if none was due. */
  hedge: HedgeResult | null = null;

  /** How many attempts were begun. */
  get count(): number {
    return this.#attempts.length;
  }

  /** The attempt whose answer or failure the client gets; `null` while nothing was sent. */
  get reported(): LoggedAttempt | null {
    return this.#reported;
  }

  /** The upstream whose answer or failure the client gets; `null` while nothing was sent. */
  get upstream(): string | null {
    return this.#reported?.upstream ?? null;
  }

  /** The name of the model at that upstream. */
  get model(): string | null {
    return this.#reported?.model ?? null;
  }

  /**
   * Begins an attempt, `startedMs` after the request arrived. It counts as interrupted until its end is noted, and its
   * result goes to the client.
   */
  begin(upstream: string, model: string, startedMs: number): LoggedAttempt {
    const attempt: LoggedAttempt = {
      upstream,
      model,
      result: 'interrupted',
      startedMs,
      durationMs: 0,
      usage: null,
      cause: null,
      upstreamError: null,
      violations: noViolations,
    };
    this.#attempts.push(attempt);
    this.#reported = attempt;
    return attempt;
  }

  /** Selects the attempt whose answer or failure goes to the client, where it is not the one that was begun last. */
  report(attempt: LoggedAttempt): void {
    this.#reported = attempt;
  }

  /** The attempts for the consumption record. */
  recorded(): readonly Attempt[] {
    return this.#attempts.map((attempt) => ({
      upstream: attempt.upstream,
      model: attempt.model,
      result: attempt.result,
      startedMs: attempt.startedMs === null ? null : Math.round(attempt.startedMs),
      durationMs: Math.round(attempt.durationMs),
      usage: attempt.usage,
      cause: causeOf(attempt),
      upstreamError: attempt.upstreamError,
    }));
  }

  /** The attempts for metrics and the log. */
  summaries(): readonly AttemptSummary[] {
    return this.#attempts.map((attempt) => ({
      ...attempt,
      cause: causeOf(attempt),
      violations: [...attempt.violations],
    }));
  }
}

/** The cause of a failure, or what is to be said of an answer that is complete all the same. */
function causeOf({ cause, violations }: LoggedAttempt): string | null {
  return cause ?? (violations.has('empty_answer') ? emptyAnswer : null);
}

/** Said of a complete answer without text. */
const emptyAnswer = 'The answer has no text: all that the model generated was reasoning, or nothing.';
