import type { BodyPiece, TakePiece, UpstreamAnswer } from '../domain/ports/upstreams.ts';
import type { BodyQueue } from './body-queue.ts';

/** An answer whose body arrives in a queue. */
export class QueuedAnswer implements UpstreamAnswer {
  readonly kind = 'answer';
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | null;
  readonly #queue: BodyQueue;

  constructor(
    { status, contentType, retryAfterMs }: Pick<UpstreamAnswer, 'status' | 'contentType' | 'retryAfterMs'>,
    queue: BodyQueue,
  ) {
    this.status = status;
    this.contentType = contentType;
    this.retryAfterMs = retryAfterMs;
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
}
