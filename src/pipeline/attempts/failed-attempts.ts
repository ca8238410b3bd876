import { isRetryable } from '../../shared/errors.ts';
import { failures } from '../../domain/upstreams/failure.ts';
import type { Route } from '../../domain/routing.ts';
import type { FailedAttempt } from './first-part.ts';

/** The attempts of one request that have failed: whether another one may follow, and whose failure the client gets. */
export class FailedAttempts {
  readonly #request: AbortSignal;
  readonly #stale: Route[] = [];
  #reported: FailedAttempt | null = null;
  #isLate = false;

  /** `request` is raised when the request must stop. */
  constructor(request: AbortSignal) {
    this.#request = request;
  }

  /** The most useful failure for the client; `null` without any. */
  get reported(): FailedAttempt | null {
    return this.#reported;
  }

  /** Whether one of them took longer than its route allows before another attempt. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Whether a failure ends the request, because it was stopped or is at fault itself. */
  isFinal({ ending }: FailedAttempt): boolean {
    return (
      ending.kind === 'interrupted' || this.#request.aborted || !failures[ending.failure.kind].mayGoElsewhere
    );
  }

  /** Whether a kept connection of the route was found closed: others may be closed, too. */
  isStale(route: Route): boolean {
    return this.#stale.includes(route);
  }

  /** Adds a failure that does not end the request. Returns whether its route may be tried once more, on a new connection. */
  add(failed: FailedAttempt): boolean {
    const { route, ending, logged } = failed;
    this.#reported = moreUseful(this.#reported, failed);
    if (route.retryWithinMs !== undefined && logged.durationMs > route.retryWithinMs) this.#isLate = true;
    if (ending.kind !== 'failed' || ending.failure.kind !== 'stale' || this.#stale.includes(route))
      return false;
    this.#stale.push(route);
    return true;
  }
}

/** Of two failures the client gets the retryable one, else the later one. */
function moreUseful(earlier: FailedAttempt | null, later: FailedAttempt): FailedAttempt {
  if (earlier === null || isRetryableEnding(later)) return later;
  return isRetryableEnding(earlier) ? earlier : later;
}

function isRetryableEnding({ ending }: FailedAttempt): boolean {
  return ending.kind === 'failed' && isRetryable(failures[ending.failure.kind].code);
}
