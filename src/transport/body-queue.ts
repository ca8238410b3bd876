import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';

/** How many unread bytes make the upstream wait: what a slow reader may cost in memory. */
const highWaterBytes = 131_072;

/** How long, in milliseconds, a released body may take to end by itself, so that its connection is reused. */
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

/** What the queue does to the source that fills it. */
interface Source {
  pause(): void;
  resume(): void;
  abort(): void;
}

/**
 * The unread part of an upstream's body, between a source that pushes and a reader that pulls. It holds the
 * call's deadlines, and turns every end that is not a proper one into a fault.
 */
export class BodyQueue {
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #startedMs: number;
  #source: Source | null = null;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #paused = false;
  #end: null | UpstreamFault | 'open' = 'open';
  #lastActivityMs: number | null = null;
  #cancelTimer: () => void;
  #waiting: ((part: Uint8Array | null | UpstreamFault) => void) | null = null;
  #released = false;
  #onEnd: (() => void) | null = null;

  constructor(clock: Clock, deadlines: Deadlines, onEnd: () => void) {
    this.#clock = clock;
    this.#deadlines = deadlines;
    this.#startedMs = clock.monotonicMs();
    this.#onEnd = onEnd;
    this.#cancelTimer = clock.schedule(
      Math.min(deadlines.firstByteMs, deadlines.totalMs),
      this.#checkDeadlines,
    );
  }

  /** The fault that ended the body, if one did. */
  get fault(): UpstreamFault | null {
    return this.#end === 'open' ? null : this.#end;
  }

  /** Ties the source to the queue; one that comes after the end is aborted at once. */
  attach(source: Source): void {
    this.#source = source;
    if (this.#end !== 'open') source.abort();
  }

  push(chunk: Uint8Array): void {
    if (this.#end !== 'open' || this.#released || chunk.length === 0) return;
    const isFirst = this.#lastActivityMs === null;
    this.#lastActivityMs = this.#clock.monotonicMs();
    if (isFirst) this.#checkDeadlines();
    if (this.#waiting !== null) return this.#answer(chunk);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < highWaterBytes || this.#paused) return;
    this.#paused = true;
    this.#source?.pause();
  }

  /** The source's own end: `null` when it is a proper one. A later one changes nothing. */
  finish(fault: UpstreamFault | null): void {
    if (this.#end !== 'open') return;
    this.#end = fault;
    this.#cancelTimer();
    this.#onEnd?.();
    if (this.#waiting !== null) this.#answer(fault);
  }

  /** Ends the body from our side, and the call with it. */
  stop(fault: UpstreamFault): void {
    if (this.#end !== 'open') return;
    this.finish(fault);
    this.#source?.abort();
  }

  /** All that has arrived since the last read. What came before a fault is handed out before the fault. */
  async read(): Promise<Uint8Array | null | UpstreamFault> {
    if (this.#end !== 'open' && this.#end?.fault === 'interrupted') return this.#end;
    if (this.#chunks.length > 0) return this.#takeAll();
    if (this.#end !== 'open') return this.#end;
    return new Promise((resolve) => (this.#waiting = resolve));
  }

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

  #answer(part: Uint8Array | null | UpstreamFault): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.(part);
  }

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

  /** One timer serves three deadlines: when it fires early, it is set again for what is left. */
  readonly #checkDeadlines = (): void => {
    const nowMs = this.#clock.monotonicMs();
    const { firstByteMs, idleMs, totalMs } = this.#deadlines;
    const totalLeftMs = this.#startedMs + totalMs - nowMs;
    if (totalLeftMs <= 0) return this.stop({ kind: 'fault', fault: 'total_timeout' });
    const quiet: UpstreamFault = {
      kind: 'fault',
      fault: this.#lastActivityMs === null ? 'first_byte_timeout' : 'idle_timeout',
    };
    const quietUntilMs =
      this.#lastActivityMs === null ? this.#startedMs + firstByteMs : this.#lastActivityMs + idleMs;
    const quietLeftMs = this.#paused ? idleMs : quietUntilMs - nowMs;
    if (quietLeftMs <= 0) return this.stop(quiet);
    this.#setTimer(Math.min(totalLeftMs, quietLeftMs));
  };

  #setTimer(delayMs: number): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(delayMs, this.#checkDeadlines);
  }
}
