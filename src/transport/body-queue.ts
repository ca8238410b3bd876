import type { Clock } from '../domain/ports/clock.ts';
import type { BodyPiece, TakePiece, UpstreamFault, UpstreamAnswer } from '../domain/ports/upstreams.ts';
import type { LimitReport } from '../protocol/upstream/limit-headers.ts';

/** How many unread bytes pause the upstream: one read of its connection, of up to 64 KiB, may add to them per slow reader. */
const highWaterBytes = 16_384;

/** How many bytes of one turn of the event loop pause the upstream although a reader waits for them. */
const maxTurnBytes = 1_048_576;

/** How long a released body may take to end, so that its connection can be reused, in milliseconds. */
const releaseGraceMs = 1_000;

/** The deadlines of one call, in milliseconds. */
export interface Deadlines {
  /** From the call to the first byte of the body. */
  readonly firstByteMs: number;
  /** Between two pieces of the body. */
  readonly idleMs: number;
  /** From the call to the end of the body. */
  readonly totalMs: number;
}

/** Calls back once all that one read of the connection brings has been pushed. */
export type AfterRead = (callback: () => void) => void;

/** The controls of the connection that fills the queue. */
export interface Source {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/**
 * The unread part of an upstream's body, between a source that pushes and a reader that takes. It enforces the call's
 * deadlines, and turns every end but a complete body into a fault.
 */
export class BodyQueue {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #afterRead: AfterRead;
  readonly #startedMs: number;
  #source: Source | null = null;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #paused = false;
  #end: null | UpstreamFault | 'open' = 'open';
  #lastActivityMs: number | null = null;
  #cancelTimer: () => void;
  #take: TakePiece | null = null;
  /** Whether what has arrived will be handed over after this read. */
  #isHandoverDue = false;
  #released = false;
  #onEnd: (() => void) | null = null;

  constructor(clock: Clock, deadlines: Deadlines, afterRead: AfterRead, onEnd: () => void) {
    this.#clock = clock;
    this.#deadlines = deadlines;
    this.#afterRead = afterRead;
    this.#startedMs = clock.monotonicMs();
    this.#onEnd = onEnd;
    // The time without a byte that is allowed later counts, too: so the first chunk needs no other timer.
    this.#cancelTimer = clock.schedule(
      Math.min(deadlines.firstByteMs, deadlines.idleMs, deadlines.totalMs),
      this.#checkDeadlines,
    );
  }

  /** The fault that ended the body, if one did. */
  get fault(): UpstreamFault | null {
    return this.#end === 'open' ? null : this.#end;
  }

  /** Whether the rest of the body is dropped. */
  get isReleased(): boolean {
    return this.#released;
  }

  /** Calls back when the body has ended, from either side; at once if it has. */
  whenOver(callback: () => void): void {
    if (this.#end !== 'open') return callback();
    const before = this.#onEnd;
    this.#onEnd = () => {
      before?.();
      callback();
    };
  }

  /** Connects the source; one that is attached after the end is aborted at once. */
  attach(source: Source): void {
    this.#source = source;
    if (this.#end !== 'open') source.abort(stopped());
  }

  /** Takes a chunk from the source, and pauses it at the high-water mark. */
  push(chunk: Uint8Array): void {
    if (this.#end !== 'open' || this.#released || chunk.length === 0) return;
    if (!this.#isHandoverDue) this.#lastActivityMs = this.#clock.monotonicMs();
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const isAwaited = this.#take !== null;
    if (isAwaited && !this.#isHandoverDue) {
      this.#isHandoverDue = true;
      this.#afterRead(this.#handOver);
    }
    if (this.#bytes < (isAwaited ? maxTurnBytes : highWaterBytes) || this.#paused) return;
    this.#paused = true;
    this.#source?.pause();
  }

  /** Ends the body from the source's side; `null` means that it is complete. Only the first end counts. */
  finish(fault: UpstreamFault | null): void {
    if (this.#end !== 'open') return;
    this.#end = fault;
    this.#tellEnd();
  }

  /** Ends the body from our side, and the call with it: who waits for the end may send another call in place of this one. */
  stop(fault: UpstreamFault): void {
    if (this.#end !== 'open') return;
    this.#end = fault;
    this.#source?.abort(stopped());
    this.#tellEnd();
  }

  #tellEnd(): void {
    this.#cancelTimer();
    this.#onEnd?.();
    this.#handOver();
  }

  /**
   * Hands over everything that has arrived, then what each read of the connection brings as one piece, until `take`
   * returns false. Most upstreams send an event as a chunk, of which one read brings many under load: a piece for each
   * would be a write for each.
   */
  consume(take: TakePiece): void {
    // Only the newest reader waits: an older one would be handed what comes after what this one gets now.
    this.#take = null;
    for (let piece = this.#next(); piece !== undefined; piece = this.#next())
      if (!take(piece) || !(piece instanceof Uint8Array)) return;
    this.#take = take;
  }

  /** Resolves with everything since the last read, or with the next piece. */
  read(): Promise<BodyPiece> {
    return new Promise((resolve) =>
      this.consume((piece) => {
        resolve(piece);
        return false;
      }),
    );
  }

  /** Drops the rest of the body: it may end within the grace, then the connection is closed. */
  release(): void {
    if (this.#end !== 'open' || this.#released) return;
    this.#released = true;
    this.#chunks = [];
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(releaseGraceMs, () =>
      this.stop({ kind: 'fault', fault: 'interrupted' }),
    );
    if (this.#paused) this.#source?.resume();
  }

  /** What is there to be taken: bytes before a fault come before it. `undefined` if nothing has arrived. */
  #next(): BodyPiece | undefined {
    const end = this.#end;
    if (end !== 'open' && end?.fault === 'interrupted') return end;
    if (this.#chunks.length > 0) return this.#takeAll();
    return end === 'open' ? undefined : end;
  }

  /** Hands what has arrived to the reader, if one waits: after the read that brought it, or when the body ends. */
  readonly #handOver = (): void => {
    this.#isHandoverDue = false;
    const take = this.#take;
    if (take === null) return;
    // While a piece is taken, the call may be stopped: its end must be handed over after that.
    this.#take = null;
    this.consume(take);
  };

  #takeAll(): Uint8Array {
    const [first] = this.#chunks;
    const all = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#bytes = 0;
    if (this.#paused) {
      this.#paused = false;
      this.#lastActivityMs = this.#clock.monotonicMs();
      this.#source?.resume();
    }
    return all;
  }

  /** One timer serves all three deadlines; when it fires before one of them, it is set again for the rest. */
  readonly #checkDeadlines = (): void => {
    const nowMs = this.#clock.monotonicMs();
    const { firstByteMs, idleMs, totalMs } = this.#deadlines;
    const totalLeftMs = this.#startedMs + totalMs - nowMs;
    // A client that does not read must not count against the upstream, whose circuit is everyone's.
    const isUnread = this.#chunks.length > 0;
    if (totalLeftMs <= 0) return this.stop({ kind: 'fault', fault: isUnread ? 'unread' : 'total_timeout' });
    const quiet: UpstreamFault = {
      kind: 'fault',
      fault: this.#lastActivityMs === null ? 'first_byte_timeout' : 'idle_timeout',
    };
    const quietUntilMs =
      this.#lastActivityMs === null ? this.#startedMs + firstByteMs : this.#lastActivityMs + idleMs;
    const quietLeftMs = this.#paused ? idleMs : quietUntilMs - nowMs;
    if (quietLeftMs <= 0) return this.stop(quiet);
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(Math.min(totalLeftMs, quietLeftMs), this.#checkDeadlines);
  };
}

/** The reason that a source gets when it is aborted. */
function stopped(): Error {
  return new Error('stopped by the gateway');
}

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
