import { GroupCounts } from '../../domain/history/counts.ts';
import type { CountedExchange } from '../../domain/history/counts.ts';
import {
  beginningOf,
  joinFigures,
  longInterval,
  maxMarks,
  partsOf,
  shortInterval,
} from '../../domain/history/interval.ts';
import type { HistoryPart, Mark, MarkKind, ProcessFigures } from '../../domain/history/interval.ts';
import type { Clock, NextId } from '../../domain/ports/clock.ts';
import type { UpstreamState } from '../../domain/upstreams/circuit.ts';

/** What a process counts its history with. */
export interface IntervalPorts {
  readonly clock: Pick<Clock, 'now'>;
  readonly nextId: NextId;
  /** The name of this process; `null` where only one uses the database. */
  readonly node: string | null;
  /** How this process was since the last call. */
  readonly readLoad: () => Pick<ProcessFigures, 'eventLoopDelayMs' | 'memoryBytes'>;
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
}

/** What a mark is about. */
export type MarkedThing = Partial<Pick<Mark, 'upstream' | 'model'>>;

/**
 * Counts the requests of this process in an interval of 10 s, which is added to that of its minute when it is over: memory grows
 * with the upstreams and models that are used in a minute, not with requests. `onClosed` gets each as it is over, and that of the
 * minute as far as it is known, each time. A sink of the pipeline's reports.
 */
export class IntervalCounter {
  readonly #ports: IntervalPorts;
  readonly #onClosed: (parts: readonly HistoryPart[]) => void;
  #process: string;
  #inFlight = 0;
  #waiting = 0;
  #short: OpenInterval;
  #long: OpenInterval;

  constructor(ports: IntervalPorts, onClosed: (parts: readonly HistoryPart[]) => void) {
    this.#ports = ports;
    this.#onClosed = onClosed;
    this.#process = ports.nextId();
    this.#short = beginInterval(shortInterval.lengthMs, ports.clock.now());
    this.#long = beginInterval(longInterval.lengthMs, ports.clock.now());
    this.mark('process_began');
  }

  exchangeBegan(): void {
    this.turn();
    this.#inFlight++;
    this.#noteLoad();
  }

  waitBegan(): void {
    this.turn();
    this.#waiting++;
    this.#noteLoad();
  }

  waitEnded(): void {
    this.turn();
    this.#waiting--;
    this.#noteLoad();
  }

  exchangeEnded(summary: CountedExchange): void {
    this.turn();
    this.#inFlight--;
    this.#short.pairs.count(summary);
  }

  /** Marks that something has happened. */
  mark(kind: MarkKind, { upstream = null, model = null }: MarkedThing = {}): void {
    this.turn();
    const { clock, node } = this.#ports;
    // Without the mark of its end, a process counts as lost.
    if (this.#short.marks.length >= maxMarks && kind !== 'process_ended') this.#short.marksLeftOut++;
    else this.#short.marks.push({ atMs: clock.now(), kind, node, upstream, model });
  }

  /** Closes the interval if it is over. A clock that is corrected by some seconds has it last longer. */
  turn(): void {
    const { clock, node, nextId } = this.#ports;
    const nowMs = clock.now();
    const { atMs, lengthMs, marks } = this.#short;
    if (nowMs >= atMs - lengthMs && nowMs < atMs + lengthMs) return;
    const isSetBack = nowMs < atMs;
    if (isSetBack) marks.push({ atMs, kind: 'clock_set_back', node, upstream: null, model: null });
    this.#close();
    this.#short = beginInterval(lengthMs, nowMs);
    if (isSetBack || beginningOf(nowMs, longInterval.lengthMs) !== this.#long.atMs)
      this.#long = beginInterval(longInterval.lengthMs, nowMs);
    // Under the same name it would replace what was counted when this time came first.
    if (isSetBack) this.#process = nextId();
    this.#noteLoad();
  }

  /** Closes the open interval: nothing is counted from then on. */
  end(): void {
    this.mark('process_ended');
    this.#close();
  }

  #noteLoad(): void {
    this.#short.running = Math.max(this.#short.running, this.#inFlight - this.#waiting);
    this.#short.waiting = Math.max(this.#short.waiting, this.#waiting);
  }

  #close(): void {
    const { node, readLoad, upstreamStates } = this.#ports;
    const { running, waiting, marks, marksLeftOut, pairs } = this.#short;
    const failing = Object.entries(upstreamStates()).filter(([, state]) => state !== 'closed');
    const load = readLoad();
    const figures = { node, running, waiting, ...load, upstreamStates: failing, marks, marksLeftOut };
    const long = this.#long;
    long.figures = long.figures === null ? figures : joinFigures(long.figures, figures);
    long.pairs.add(pairs.all());
    this.#onClosed(partsOf({ ...this.#short, process: this.#process }, figures, pairs));
    this.#onClosed(partsOf({ ...long, process: this.#process }, long.figures, long.pairs));
  }
}

type OpenInterval = ReturnType<typeof beginInterval>;

function beginInterval(lengthMs: number, nowMs: number) {
  return {
    lengthMs,
    atMs: beginningOf(nowMs, lengthMs),
    pairs: new GroupCounts('upstream,model'),
    running: 0,
    waiting: 0,
    marks: [] as Mark[],
    marksLeftOut: 0,
    /** Of a minute: what is known of it by the intervals of 10 s that are over. */
    figures: null as ProcessFigures | null,
  };
}
