import type { Permit, RequestTokens } from '../../domain/ports/upstream-limiters.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { UpstreamAnswer } from '../../domain/ports/upstreams.ts';

/** What a call used that the upstream refused, or that did not reach it. */
export const nothingUsed: RequestTokens = { input: 0, output: 0 };

/** A request's permit at an upstream, which is released once, whatever becomes of the call. */
export class HeldPermit implements Target {
  readonly upstream: string;
  readonly model: string | null;
  /** Whether the model has limits of its own there. */
  readonly isOfModel: boolean;
  #permit: Permit | null;
  #isSent = false;

  constructor(permit: Permit) {
    this.upstream = permit.upstream;
    this.model = permit.model;
    this.isOfModel = permit.isOfModel;
    this.#permit = permit;
  }

  /** Whether it has not been released. */
  get isHeld(): boolean {
    return this.#permit !== null;
  }

  /** Notes that the request is being sent. A permit that is released before that has used nothing of any limit. */
  sent(): void {
    this.#isSent = true;
  }

  /** Notes the head of the answer. */
  answered({
    status,
    retryAfterMs,
    limits,
  }: Pick<UpstreamAnswer, 'status' | 'retryAfterMs' | 'limits'>): void {
    this.#permit?.answered(status, retryAfterMs, limits);
  }

  /**
   * Releases the permit: when the call that `answer` belongs to is over for the upstream, too, or at once without one. A
   * request sent before that would be one too many there. `usage` is `null` where it is unknown.
   */
  release(usage: RequestTokens | null, answer: Pick<UpstreamAnswer, 'whenOver'> | null): void {
    const permit = this.#permit;
    this.#permit = null;
    if (permit === null) return;
    if (!this.#isSent) permit.releaseUnused();
    else if (answer === null) permit.release(usage);
    else answer.whenOver(() => permit.release(usage));
  }
}
