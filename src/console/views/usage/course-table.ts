import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import type { Series } from '../../widgets/chart.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { formatCount, formatTime } from '../../widgets/format.ts';
import { ShowMore } from '../../widgets/show-more.ts';
import { formatDay } from './format-day.ts';
import type { MeasureName } from './groups.ts';
import { dayAt } from './time-range.ts';
import type { TimeRange } from './time-range.ts';

/** How many rows are shown at first, and how many more at each wish: there may be thousands of days. */
const firstRows = 60;
const moreRows = 500;

/** Amounts are counted in billionths of a dollar; sums of them are written without what computing adds behind that. */
const amount = new Intl.NumberFormat('en', { maximumFractionDigits: 9, useGrouping: false });

interface Props {
  readonly caption: string;
  readonly series: readonly Series[];
  readonly range: TimeRange;
  readonly show: MeasureName;
}

/** One hour or day. */
interface Row {
  readonly place: number;
  readonly startMs: number;
}

/** The figures of the chart, for those who can't see it or want them exactly. It is drawn once it is opened. */
export function CourseTable(props: Props): VNode {
  const [isOpen, setIsOpen] = useState(false);
  return html`
    <details onToggle=${(event: Event) => setIsOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>The figures of the chart</summary>
      ${isOpen && html`<${Figures} ...${props} />`}
    </details>
  `;
}

function Figures({ caption, series, range, show }: Props): VNode {
  const [limit, setLimit] = useState(firstRows);
  const rows = useMemo(
    () => range.starts.map((startMs, place) => ({ place, startMs })).slice(0, limit),
    [range, limit],
  );
  const columns = useMemo(() => columnsOf(series, range, show), [series, range, show]);
  return html`
    <${DataTable}
      caption=${caption}
      columns=${columns}
      rows=${rows}
      keyOf=${({ startMs }: Row) => String(startMs)}
    />
    <${ShowMore}
      shown=${rows.length}
      total=${range.starts.length}
      plural=${`${range.unit}s`}
      onMore=${() => setLimit(limit + moreRows)}
    />
  `;
}

function columnsOf(series: readonly Series[], range: TimeRange, show: MeasureName): readonly Column<Row>[] {
  const write = show === 'charge' ? (value: number) => `$${amount.format(value)}` : formatCount;
  const isHourly = range.unit === 'hour';
  return [
    {
      title: isHourly ? 'From' : 'Day',
      isName: true,
      cell: ({ place, startMs }) =>
        isHourly ? formatTime(new Date(startMs).toISOString()) : formatDay(dayAt(range, place)),
    },
    ...series.map(({ name, values }) => ({
      title: name,
      isNumber: true,
      cell: ({ place }: Row) => write(values[place] ?? 0),
    })),
  ];
}
