import type { HistoryGrouping } from '../domain/history/counts.ts';
import { GroupCounts } from '../domain/history/counts.ts';
import type { CountedGroup, Counts } from '../domain/history/counts.ts';
import {
  beginningOf,
  joinFigures,
  longInterval,
  shortInterval,
  worstStates,
} from '../domain/history/interval.ts';
import type { HistoryPart, Mark, ProcessFigures } from '../domain/history/interval.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { HistoryRange, HistoryStore } from '../domain/ports/history.ts';
import { quantilesOf } from '../shared/time-bounds.ts';

/** The longest time that is read at once, in milliseconds: all that is kept. */
export const longestHistoryMs = 86_400_000;

/** How many points an answer has at most: a day by minutes, and fewer where each has the figures of groups, too. */
const maxPoints = 1_440;
const maxGroupedPoints = 360;

/** How many marks an answer has at most: the newest ones. */
const maxMarks = 1_000;

/** How long after its end an interval is in the database, in milliseconds: before it, a point would lack some processes. */
const writtenMs = 2_000;

/** How many intervals without a word of a process show that it has ended. */
const lostIntervals = 3;

/** What history is asked for; times are milliseconds since 1970. */
export interface HistoryQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly by: HistoryGrouping;
}

/** The requests that ended in a time. */
export interface HistoryFigures extends Omit<Counts, 'firstTexts'> {
  /** How long streams took to their first text, in milliseconds, right to 3 %; `null` without a stream. */
  readonly firstTextMs: Readonly<Record<'p50' | 'p95' | 'p99', number | null>>;
}

/** One point: what all processes did in a time. */
export interface HistoryPoint
  extends HistoryFigures, Omit<ProcessFigures, 'node' | 'marks' | 'marksLeftOut'> {
  readonly atMs: number;
  /** How many processes wrote something in it. */
  readonly processes: number;
  /** The same by group; empty where no grouping was asked for. */
  groups: readonly (Omit<CountedGroup, 'counts'> & { readonly figures: HistoryFigures })[];
}

/** The history of some time, oldest first. Times in which no process ran have no point. */
export interface History extends HistoryQuery {
  readonly stepMs: number;
  readonly points: readonly HistoryPoint[];
  readonly marks: readonly Mark[];
  readonly marksLeftOut: number;
}

/** Reads what all processes did. Points are as far apart as their number and what is kept of that time need. */
export async function readHistory(
  { fromMs, toMs, by }: HistoryQuery,
  { store, clock }: { readonly store: Pick<HistoryStore, 'read'>; readonly clock: Clock },
): Promise<History> {
  const nowMs = clock.now();
  const { lengthMs } = fromMs >= nowMs - shortInterval.keptMs ? shortInterval : longInterval;
  const most = by === '' ? maxPoints : maxGroupedPoints;
  const stepMs = lengthMs * Math.ceil((toMs - fromMs) / (lengthMs * most));
  const [beginMs, endMs] = [beginningOf(fromMs, stepMs), Math.min(toMs, nowMs + lengthMs)];
  const range = { lengthMs, fromMs: beginMs, toMs: endMs };
  const lives = new ProcessLives(lengthMs);
  const points = new Map<number, HistoryPoint>();
  const isOver = (atMs: number): boolean => atMs + stepMs + writtenMs <= nowMs;
  for await (const [atMs, parts] of readSteps(store, { ...range, grouping: '' }, stepMs)) {
    lives.note(parts);
    if (isOver(atMs)) points.set(atMs, pointOf(atMs, parts));
  }
  if (by !== '')
    for await (const [atMs, parts] of readSteps(store, { ...range, grouping: by }, stepMs)) {
      const point = points.get(atMs);
      if (point !== undefined) point.groups = groupsOf(parts, by);
    }
  const marks = [...lives.marks(Math.min(endMs, nowMs))]
    .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
    .toSorted((one, other) => one.atMs - other.atMs);
  const marksLeftOut = lives.marksLeftOut + Math.max(0, marks.length - maxMarks);
  return {
    fromMs,
    toMs,
    by,
    stepMs,
    points: [...points.values()],
    marks: marks.slice(-maxMarks),
    marksLeftOut,
  };
}

/** Reads parts by steps: only those of one step are in memory. */
async function* readSteps(
  store: Pick<HistoryStore, 'read'>,
  range: HistoryRange,
  stepMs: number,
): AsyncGenerator<readonly [atMs: number, parts: readonly HistoryPart[]]> {
  let atMs = range.fromMs;
  let parts: HistoryPart[] = [];
  for await (const page of store.read(range))
    for (const part of page) {
      const stepAtMs = beginningOf(part.atMs, stepMs);
      if (stepAtMs !== atMs && parts.length > 0) {
        yield [atMs, parts];
        parts = [];
      }
      atMs = stepAtMs;
      parts.push(part);
    }
  if (parts.length > 0) yield [atMs, parts];
}

function pointOf(atMs: number, parts: readonly HistoryPart[]): HistoryPoint {
  const processes = new Map<string, ProcessFigures>();
  for (const { process, figures } of parts) {
    if (figures === null) continue;
    const known = processes.get(process);
    processes.set(process, known === undefined ? figures : joinFigures(known, figures));
  }
  const all = [...processes.values()];
  const sum = (figure: (figures: ProcessFigures) => number): number =>
    all.reduce((total, figures) => total + figure(figures), 0);
  const total = new GroupCounts('');
  for (const { groups } of parts) total.add(groups);
  return {
    atMs,
    processes: all.length,
    running: sum(({ running }) => running),
    waiting: sum(({ waiting }) => waiting),
    eventLoopDelayMs: Math.max(...all.map(({ eventLoopDelayMs }) => eventLoopDelayMs)),
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    upstreamStates: worstStates(all.flatMap(({ upstreamStates }) => upstreamStates)),
    ...figuresOf(total.whole()),
    groups: [],
  };
}

function groupsOf(parts: readonly HistoryPart[], by: HistoryGrouping): HistoryPoint['groups'] {
  const all = new GroupCounts(by);
  for (const { groups } of parts) all.add(groups);
  return all.top().map(({ upstream, model, isOther, counts }) => {
    return { upstream, model, isOther, figures: figuresOf(counts) };
  });
}

function figuresOf({ firstTexts, ...counts }: Counts): HistoryFigures {
  const quantile = quantilesOf(
    Object.entries(firstTexts).map(([bound, times]) => [Number(bound), times] as const),
  );
  return { ...counts, firstTextMs: { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) } };
}

/** The processes that were there, with what they marked. One that was killed has not marked its end. */
class ProcessLives {
  marksLeftOut = 0;
  readonly #lengthMs: number;
  readonly #marks: Mark[] = [];
  readonly #lives = new Map<string, { readonly node: string | null; endMs: number; hasEnded: boolean }>();

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  note(parts: readonly HistoryPart[]): void {
    for (const { process, atMs, figures } of parts) {
      const { marks = [], marksLeftOut = 0, node = null } = figures ?? {};
      this.#marks.push(...marks);
      this.marksLeftOut += marksLeftOut;
      const hasEnded = marks.some(({ kind }) => kind === 'process_ended' || kind === 'clock_set_back');
      this.#lives.set(process, { node, endMs: atMs + this.#lengthMs, hasEnded });
    }
  }

  /** All marks up to a time, in no order. */
  *marks(untilMs: number): Iterable<Mark> {
    yield* this.#marks;
    for (const { node, endMs, hasEnded } of this.#lives.values())
      if (!hasEnded && endMs + lostIntervals * this.#lengthMs <= untilMs)
        yield { atMs: endMs, kind: 'process_lost', node, upstream: null, model: null };
  }
}
