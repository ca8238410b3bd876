import type { UpstreamState } from '../upstreams/circuit.ts';
import { GroupCounts, historyGroupings } from './counts.ts';
import type { CountedGroup, HistoryGrouping } from './counts.ts';

/** How long an interval of each kind is, and how long it is kept behind its beginning, in milliseconds. */
export const shortInterval = { lengthMs: 10_000, keptMs: 3_600_000 + 600_000 } as const;
export const longInterval = { lengthMs: 60_000, keptMs: 86_400_000 + 600_000 } as const;

/** The beginning of the interval in which a time is. */
export function beginningOf(atMs: number, lengthMs: number): number {
  return Math.floor(atMs / lengthMs) * lengthMs;
}

/** What can happen that is marked. That a process was lost is found out when history is read. */
export const markKinds = [
  'process_began',
  'process_ended',
  'process_lost',
  'clock_set_back',
  'config_loaded',
  'config_refused',
  'circuit_opened',
  'circuit_closed',
] as const;

export type MarkKind = (typeof markKinds)[number];

/** Something that happened beside requests, and no operator did. */
export interface Mark {
  readonly atMs: number;
  readonly kind: MarkKind;
  /** The process: its host and number; `null` where only one uses the database. */
  readonly node: string | null;
  /** Whose circuit it is; `null` for all other kinds, and the model for a circuit of all its models. */
  readonly upstream: string | null;
  readonly model: string | null;
}

/** How many marks of one interval are kept: the first ones, and the last one, which may be the end of the process. */
export const maxMarks = 50;

/** How a process was during an interval. */
export interface ProcessFigures {
  readonly node: string | null;
  /** The most requests that ran at a time, and the most that waited. */
  readonly running: number;
  readonly waiting: number;
  /** The longest time for which the event loop was late, in milliseconds. */
  readonly eventLoopDelayMs: number;
  /** The resident memory at its end, in bytes. */
  readonly memoryBytes: number;
  /** The states of upstreams at its end that are not `closed`, by name. */
  readonly upstreamStates: readonly (readonly [upstream: string, state: UpstreamState])[];
  readonly marks: readonly Mark[];
  readonly marksLeftOut: number;
}

/** A part of an interval of one process: its requests by one grouping. */
export interface HistoryPart {
  readonly lengthMs: number;
  readonly atMs: number;
  /** One run of a process; another one after its clock was set back, so that the repeated time is counted beside the first. */
  readonly process: string;
  readonly grouping: HistoryGrouping;
  /** Only with the requests that are not grouped. */
  readonly figures: ProcessFigures | null;
  readonly groups: readonly CountedGroup[];
}

/** The figures of one process over two intervals, the later of which is `last`. */
export function joinFigures(first: ProcessFigures, last: ProcessFigures): ProcessFigures {
  const marks = [...first.marks, ...last.marks];
  const tooMany = Math.max(0, marks.length - maxMarks);
  return {
    node: last.node,
    running: Math.max(first.running, last.running),
    waiting: Math.max(first.waiting, last.waiting),
    eventLoopDelayMs: Math.max(first.eventLoopDelayMs, last.eventLoopDelayMs),
    memoryBytes: Math.max(first.memoryBytes, last.memoryBytes),
    upstreamStates: worstStates([...first.upstreamStates, ...last.upstreamStates]),
    marks: marks.toSpliced(maxMarks - 1, tooMany),
    marksLeftOut: first.marksLeftOut + last.marksLeftOut + tooMany,
  };
}

/** The worst state of each upstream among some that are not `closed`. */
export function worstStates(states: ProcessFigures['upstreamStates']): ProcessFigures['upstreamStates'] {
  const worst = new Map<string, UpstreamState>();
  for (const [upstream, state] of states) if (worst.get(upstream) !== 'open') worst.set(upstream, state);
  return [...worst];
}

/** An interval of one process as its parts, from what it counted of each upstream and model. */
export function partsOf(
  { lengthMs, atMs, process }: Pick<HistoryPart, 'lengthMs' | 'atMs' | 'process'>,
  figures: ProcessFigures,
  pairs: GroupCounts,
): readonly HistoryPart[] {
  return historyGroupings.map((grouping) => {
    const counts = new GroupCounts(grouping);
    counts.add(pairs.all());
    const own = grouping === '' ? figures : null;
    return { lengthMs, atMs, process, grouping, figures: own, groups: counts.top() };
  });
}
