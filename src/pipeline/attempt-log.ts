import type { ProtocolViolation, Usage } from '../protocol/text.ts';
import type { AttemptResult } from '../domain/attempt-result.ts';
import type { Attempt } from '../domain/consumption.ts';
import type { AttemptSummary } from '../domain/exchange-summary.ts';

/** One attempt at an upstream, as far as it has come. */
export interface LoggedAttempt extends Attempt {
  result: AttemptResult;
  durationMs: number;
  usage: Usage | null;
  /** For the operator alone. */
  cause: string | null;
  /** How the upstream broke its protocol, as far as it has been read. */
  violations: ReadonlySet<ProtocolViolation>;
}

/** What was sent upstream for one request, in order. */
export class AttemptLog {
  readonly #attempts: LoggedAttempt[] = [];
  #told: LoggedAttempt | null = null;

  get isEmpty(): boolean {
    return this.#attempts.length === 0;
  }

  /** The upstream whose answer or failure the client gets; `null` while nothing was sent. */
  get upstream(): string | null {
    return this.#told?.upstream ?? null;
  }

  /** Begins an attempt, which counts as interrupted until its end is noted. The client gets its answer, or its failure. */
  begin(upstream: string, model: string): LoggedAttempt {
    const attempt: LoggedAttempt = {
      upstream,
      model,
      result: 'interrupted',
      durationMs: 0,
      usage: null,
      cause: null,
      violations: new Set(),
    };
    this.#attempts.push(attempt);
    this.#told = attempt;
    return attempt;
  }

  /** The client gets the failure of an earlier attempt, because it says more than the last one. */
  tell(attempt: LoggedAttempt): void {
    this.#told = attempt;
  }

  /** As the record keeps them: without causes, which may name addresses. */
  recorded(): readonly Attempt[] {
    return this.#attempts.map(({ upstream, model, result, durationMs, usage }) => ({
      upstream,
      model,
      result,
      durationMs: Math.round(durationMs),
      usage,
    }));
  }

  /** As metrics and the log show them. */
  summaries(): readonly AttemptSummary[] {
    return this.#attempts.map((attempt) => ({ ...attempt, violations: [...attempt.violations] }));
  }
}
