import type { Place, RoomTokens } from '../../domain/ports/rooms.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { UpstreamAnswer } from '../../domain/ports/upstreams.ts';

/** What a call used that the upstream refused, or that did not reach it. */
export const nothingUsed: RoomTokens = { input: 0, output: 0 };

/** A request's place at an upstream, which is given back once, whatever becomes of the call. */
export class HeldPlace implements Target {
  readonly upstream: string;
  readonly model: string | null;
  /** Whether the model has limits of its own there. */
  readonly isOfModel: boolean;
  #place: Place | null;
  #isSent = false;

  constructor(place: Place) {
    this.upstream = place.upstream;
    this.model = place.model;
    this.isOfModel = place.isOfModel;
    this.#place = place;
  }

  /** Whether it has not been given back. */
  get isHeld(): boolean {
    return this.#place !== null;
  }

  /** Notes that the request is being sent. A place that is given back before that has used nothing of any limit. */
  sent(): void {
    this.#isSent = true;
  }

  /** Notes the head of the answer. */
  answered({
    status,
    retryAfterMs,
    limits,
  }: Pick<UpstreamAnswer, 'status' | 'retryAfterMs' | 'limits'>): void {
    this.#place?.answered(status, retryAfterMs, limits);
  }

  /**
   * Gives the place back: when the call that `answer` belongs to is over for the upstream, too, or at once without one. A
   * request sent before that would be one too many there. `usage` is `null` where it is unknown.
   */
  leave(usage: RoomTokens | null, answer: Pick<UpstreamAnswer, 'whenOver'> | null): void {
    const place = this.#place;
    this.#place = null;
    if (place === null) return;
    if (!this.#isSent) place.withdraw();
    else if (answer === null) place.leave(usage);
    else answer.whenOver(() => place.leave(usage));
  }
}
