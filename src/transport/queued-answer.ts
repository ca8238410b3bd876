import type { BodyPiece, TakePiece, UpstreamAnswer } from '../domain/ports/upstreams.ts';
import type { LimitReport } from '../protocol/upstream/limit-headers.ts';
import type { BodyQueue } from './body-queue.ts';

/** What the head of an answer says. */
type UpstreamHead = Pick<UpstreamAnswer, 'status' | 'contentType' | 'retryAfterMs' | 'limits'>;

/** An answer whose body arrives in a queue. */
export class QueuedAnswer implements UpstreamAnswer {
  readonly kind = 'answer';
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  readonly limits: LimitReport | null;
  readonly #queue: BodyQueue;

  constructor({ status, contentType, retryAfterMs, limits }: UpstreamHead, queue: BodyQueue) {
    this.status = status;
    this.contentType = contentType;
    this.retryAfterMs = retryAfterMs;
    this.limits = limits;
    this.#queue = queue;
  }

  read(): Promise<BodyPiece> {
    return this.#queue.read();
  }

  consume(take: TakePiece): void {
    this.#queue.consume(take);
  }

  release(): void {
    this.#queue.release();
  }

  whenOver(callback: () => void): void {
    this.#queue.whenOver(callback);
  }
}
