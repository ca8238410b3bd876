import type { FigureRow } from './figures.ts';

/** What a figure of textgate should be: at most or at least a number, or a ratio to another subject's median. */
export interface Goal {
  /** The figure, as `scenario.figure`. */
  readonly id: string;
  readonly against: string | null;
  readonly bound: 'at most' | 'at least';
  readonly limit: number;
}

const atMost = (id: string, limit: number, against: string | null = null): Goal => ({
  id,
  against,
  bound: 'at most',
  limit,
});

/** Of two for one figure the first one is the next step. */
const goals: readonly Goal[] = [
  atMost('whole.cpuPerRequest', 1.3, 'naive'),
  atMost('whole.cpuPerRequest', 0.9, 'naive'),
  atMost('whole.cpuPerRequest', 0.2, 'portkey'),
  atMost('whole1.cpuPerRequest', 2, 'naive'),
  atMost('calls.one', 30),
  atMost('at-rest.bytes', 150),
  atMost('blast8.cpuPerEvent', 0.6, 'naive'),
  atMost('blast8.cpuPerEvent', 0.35, 'naive'),
  atMost('blast8.cpuPerEvent', 0.12, 'portkey'),
  atMost('blast8.cpuPerEvent', 4, 'nginx'),
  atMost('paced.cpuPerEvent', 0.9, 'naive'),
  atMost('paced.cpuPerEvent', 0.75, 'naive'),
  atMost('paced.cpuPerEvent', 0.4, 'portkey'),
  atMost('paced.cpuPerEvent', 3, 'nginx'),
  atMost('burst.p50', 1),
  atMost('burst.p99', 6),
  atMost('burst500.p99', 1, 'naive'),
  atMost('burst500.event.p99', 1, 'naive'),
  atMost('burst2000.p99', 1, 'naive'),
  atMost('burst2000.event.p99', 1, 'naive'),
  atMost('one.p50', 0.5),
  atMost('one.p99', 1.2),
  atMost('one.p99', 1),
  atMost('open.perStream', 45),
  atMost('open-long.perStream', 60),
  atMost('open.idle', 120),
  atMost('open.idle', 100),
  atMost('whole.memoryAfter', 180),
  atMost('open.start', 500),
  atMost('cli.version', 200),
  atMost('cli.help', 200),
  { id: 'settled.perSecond', against: null, bound: 'at least', limit: 3_000 },
  atMost('slow-reader.growth', 30),
];

/** A goal held against what was found. */
export interface JudgedGoal extends Goal {
  readonly row: FigureRow;
  /** The figure, or its ratio to the other subject's; NaN where there is none, as that subject adds nothing to nginx. */
  readonly found: number;
  readonly isMet: boolean;
}

/** Judges the goals for which there are figures. */
export function judgeGoals(
  rows: readonly FigureRow[],
  wanted: readonly Goal[] = goals,
): readonly JudgedGoal[] {
  return wanted.flatMap((goal) => {
    const row = rows.find(({ id }) => id === goal.id);
    const own = row?.bySubject.get('textgate');
    if (row === undefined || own === undefined) return [];
    const other = goal.against === null ? null : row.bySubject.get(goal.against);
    if (other === undefined) return [];
    const base = other === null ? 1 : other.median;
    const found = base > 0 ? own.median / base : Number.NaN;
    const limit = goal.limit * base;
    const isMet = goal.bound === 'at most' ? own.median <= limit : own.median >= limit;
    return [{ ...goal, row, found, isMet }];
  });
}
