import type { presentHistory } from '../../../http/present/history.ts';
import type { Series } from '../../widgets/chart.ts';
import { formatDuration, formatShort } from '../../widgets/format.ts';

export type History = ReturnType<typeof presentHistory>;

/** What all processes did in one step of the time. */
export type Figures = History['points'][number];

interface Line {
  readonly name: string;
  /** The value of a point whose step has so many seconds; `null` where there is none. */
  readonly valueOf: (point: Figures, seconds: number) => number | null;
}

/** Something that a chart shows over time. */
export interface Measure {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly write: (value: number) => string;
  /** The least that the axis shows. */
  readonly least: number;
}

/** The outcomes of requests that got what they asked for, that were refused, and whose clients left. All others failed. */
const kinds: Readonly<Record<string, 'completed' | 'refused' | 'left'>> = {
  completed: 'completed',
  incomplete: 'completed',
  refused: 'refused',
  client_closed: 'left',
  cancelled: 'left',
};

function countOf(point: Figures, kind: 'completed' | 'refused' | 'left' | 'failed'): number {
  return Object.entries(point.requests)
    .filter(([outcome]) => (kinds[outcome] ?? 'failed') === kind)
    .reduce((sum, [, count]) => sum + count, 0);
}

function perSecond(name: string, kind: Parameters<typeof countOf>[1]): Line {
  return { name, valueOf: (point, seconds) => countOf(point, kind) / seconds };
}

const bytesInMebibyte = 1_048_576;

/** What can be shown. */
export const measures = {
  requests: {
    title: 'Requests per second',
    lines: [
      perSecond('completed', 'completed'),
      perSecond('refused', 'refused'),
      perSecond('failed', 'failed'),
      perSecond('stopped by the client or an operator', 'left'),
    ],
    write: formatShort,
    least: 1,
  },
  running: {
    title: 'Requests in progress',
    lines: [
      { name: 'in progress', valueOf: ({ running }) => running },
      { name: 'waiting', valueOf: ({ waiting }) => waiting },
    ],
    write: formatShort,
    least: 5,
  },
  first_text: {
    title: 'Time to first text',
    lines: [
      { name: 'half of them within', valueOf: ({ first_text_ms: { p50 } }) => p50 },
      { name: '95 % within', valueOf: ({ first_text_ms: { p95 } }) => p95 },
      { name: '99 % within', valueOf: ({ first_text_ms: { p99 } }) => p99 },
    ],
    write: formatDuration,
    least: 100,
  },
  tokens: {
    title: 'Output tokens per second',
    lines: [{ name: 'output tokens', valueOf: ({ output_tokens: tokens }, seconds) => tokens / seconds }],
    write: formatShort,
    least: 10,
  },
  spend: {
    title: 'Charges per minute',
    lines: [{ name: 'charges', valueOf: ({ charge }, seconds) => (Number(charge) / seconds) * 60 }],
    write: (value) => `$${formatShort(value)}`,
    least: 0,
  },
  event_loop: {
    title: 'Event-loop delay',
    lines: [{ name: 'the longest', valueOf: ({ event_loop_delay_ms: delay }) => delay }],
    write: formatDuration,
    least: 20,
  },
  memory: {
    title: 'Memory',
    lines: [{ name: 'resident', valueOf: ({ memory_bytes: bytes }) => bytes / bytesInMebibyte }],
    write: (value) => `${formatShort(value)} MiB`,
    least: 100,
  },
} as const satisfies Readonly<Record<string, Measure>>;

export type MeasureName = keyof typeof measures;

/** The lines of a chart: a value for each step of the time, and none where no process ran. */
export function seriesOf(
  { from, to, step_seconds: seconds, points }: History,
  { lines }: Measure,
): { readonly times: readonly number[]; readonly series: readonly Series[] } {
  const stepOf = (iso: string): number => Math.floor(Date.parse(iso) / 1_000 / seconds);
  const [first, last] = [stepOf(from), stepOf(to)];
  const byStep = new Map(points.map((point) => [stepOf(point.at), point]));
  const steps = Array.from({ length: last - first + 1 }, (_none, index) => first + index);
  return {
    times: steps.map((step) => step * seconds),
    series: lines.map(({ name, valueOf }: Line) => ({
      name,
      values: steps.map((step) => {
        const point = byStep.get(step);
        return point === undefined ? null : valueOf(point, seconds);
      }),
    })),
  };
}
