import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import { Chart } from '../../widgets/chart.ts';
import type { Series } from '../../widgets/chart.ts';
import { formatCount, formatShort, formatTime, shortName } from '../../widgets/format.ts';
import { Folded } from '../../widgets/folded.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { groups, measureOf, measureTitles } from './groups.ts';
import type { GroupName, MeasureName, UsageRow } from './groups.ts';
import { placeOf, formatDay, dayAt } from './time-range.ts';
import type { TimeRange } from './time-range.ts';
import type { Course } from './use-report.ts';

interface Props {
  readonly course: Course;
  readonly range: TimeRange;
  readonly by: GroupName;
  readonly show: MeasureName;
  /** How many groups there are in all. */
  readonly count: number;
}

/** What the groups with the most used in each hour or day, and all others together. */
export function UsageChart({ course, range, by, show, count }: Props): VNode {
  const { starts, endMs, unit } = range;
  // The end has no bar of its own, but the last bar needs its place.
  const times = useMemo(() => [...starts, endMs].map((moment) => moment / 1_000), [range]);
  const series = useMemo(
    () => seriesOf({ course, range, by, show, count }),
    [course, range, by, show, count],
  );
  const title = `${measureTitles[show]} per ${unit}, by ${by}`;
  return html`
    <${Chart}
      label=${`${title}. The figures are in the table below.`}
      times=${times}
      series=${series}
      isStacked=${true}
      isUtc=${range.period === 'day'}
      write=${show === 'charge' ? (value: number) => `$${formatShort(value)}` : formatShort}
    />
    <${Folded} summary="The figures of the chart">
      ${() => html`<${FigureTable} caption=${title} series=${series} range=${range} show=${show} />`}
    <//>
  `;
}

function seriesOf({ course, range, by, show, count }: Props): readonly Series[] {
  const valuesOf = (rows: readonly UsageRow[]): number[] => {
    const values = Array.from({ length: range.starts.length + 1 }, () => 0);
    for (const row of rows) {
      const place = placeOf(range.starts, Date.parse(row.hour ?? row.day ?? ''));
      if (place !== -1) values[place] = (values[place] ?? 0) + measureOf(row, show);
    }
    return values;
  };
  const names = uniqueNames(course.parts.map(({ group }) => shortName(groups[by].nameOf(group))));
  const shown = course.parts.map(({ rows }, index) => ({ name: names[index] ?? '', values: valuesOf(rows) }));
  if (count <= shown.length) return shown;
  const rest = valuesOf(course.all).map((all, place) =>
    Math.max(
      0,
      shown.reduce((left, { values }) => left - (values[place] ?? 0), all),
    ),
  );
  return [...shown, { name: `${formatCount(count - shown.length)} others`, values: rest }];
}

/** Keys of the past may have had the same name. */
function uniqueNames(names: readonly string[]): readonly string[] {
  return names.map((name, index) => {
    const before = names.slice(0, index).filter((other) => other === name).length;
    return before === 0 ? name : `${name} (${before + 1})`;
  });
}

/** How many rows are shown at first, and how many more at each wish: there may be thousands of days. */
const rowCounts = { first: 60, more: 500 };

/** Amounts are counted in billionths of a dollar; sums of them are written without what computing adds behind that. */
const amount = new Intl.NumberFormat('en', { maximumFractionDigits: 9, useGrouping: false });

interface TableProps {
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

/** The figures of the chart, for those who can't see it or want them exactly. */
function FigureTable({ caption, series, range, show }: TableProps): VNode {
  const rows = useMemo(() => range.starts.map((startMs, place) => ({ place, startMs })), [range]);
  const columns = useMemo(() => columnsOf(series, range, show), [series, range, show]);
  return html`<${DataTable}
    caption=${caption}
    columns=${columns}
    rows=${rows}
    keyOf=${({ startMs }: Row) => String(startMs)}
    paging=${{ ...rowCounts, plural: `${range.unit}s` }}
  />`;
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
