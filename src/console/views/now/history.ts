import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded, usePolling } from '../../api/use-loaded.ts';
import { boundsOf, readTime, timeParameters } from '../../chosen-time.ts';
import type { Bounds, ChosenTime, TimeName } from '../../chosen-time.ts';
import { goTo, linkTo } from '../../route.ts';
import { Chart } from '../../widgets/chart.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Fault } from '../../widgets/fault.ts';
import { Select } from '../../widgets/field.ts';
import { Folded } from '../../widgets/folded.ts';
import { formatCount, formatTime } from '../../widgets/format.ts';
import { boundsText, TimeChoice } from '../../widgets/time-choice.ts';
import { marksOf, maxActs, readActs } from './marks.ts';
import type { Mark } from './marks.ts';
import { measures, seriesOf } from './measures.ts';
import type { Figures, History, Measure, MeasureName } from './measures.ts';

/** The times that are offered: history is kept for a day. */
const timeNames: readonly TimeName[] = ['15m', '1h', '24h'];

/** How often a time that goes on with the clock is read again, in milliseconds: as often as there are new figures. */
const everyMs = 10_000;

/** What happened lately: a chart of what is chosen, with the events of that time. All of it is in the address. */
export function HistoryPanel({ query }: { readonly query: URLSearchParams }): VNode {
  const time = readTime(query, timeNames, '15m');
  const name =
    (Object.keys(measures) as MeasureName[]).find((one) => one === query.get('show')) ?? 'requests';
  const asked = useHistory(time);
  usePolling(asked, time.given === null ? everyMs : null);
  const go = (changed: ChosenTime, show: string = name): void =>
    goTo(linkTo('now', null, { ...timeParameters(changed), show }));
  const { answer, error } = asked;
  return html`
    <div class="row">
      <${TimeChoice} time=${time} names=${timeNames} onChange=${(changed: ChosenTime) => go(changed)} />
      <${Select}
        label="Show"
        value=${name}
        options=${Object.entries(measures).map(([value, { title }]) => [value, title])}
        onChange=${(show: string) => go(time, show)}
      />
    </div>
    <${Fault} text=${error} />
    ${
      answer !== null &&
      html`<${HistoryChart}
        loaded=${answer}
        measure=${measures[name]}
        onZoom=${(given: Bounds) => go({ name: null, given })}
      />`
    }
  `;
}

/** What was read of a time. */
interface LoadedHistory {
  readonly bounds: Bounds;
  readonly history: History;
  readonly marks: readonly Mark[];
  /** Whether operators did more than was read. */
  readonly hasMoreActs: boolean;
}

function useHistory(time: ChosenTime) {
  return useLoaded<LoadedHistory>(JSON.stringify(time), async (signal) => {
    const bounds = boundsOf(time, Date.now());
    const [history, acts] = await Promise.all([
      callAdmin<History>(adminPath('history', { ...bounds }), { signal }),
      readActs(bounds, signal),
    ]);
    return { bounds, history, marks: marksOf(history, acts, bounds), hasMoreActs: acts.next !== null };
  });
}

interface ChartProps {
  readonly loaded: LoadedHistory;
  readonly measure: Measure;
  readonly onZoom: (bounds: Bounds) => void;
}

function HistoryChart({ loaded, measure, onZoom }: ChartProps): VNode {
  const { history, marks, hasMoreActs, bounds } = loaded;
  const { times, series } = useMemo(() => seriesOf(history, measure), [history, measure]);
  const lines = useMemo(() => marks.map(({ at }) => Date.parse(at) / 1_000), [marks]);
  const zoom = (from: number, to: number): void =>
    onZoom({ from: new Date(from * 1_000).toISOString(), to: new Date(to * 1_000).toISOString() });
  return html`
    ${
      history.points.length === 0 &&
      html`<p class="empty">
        There are no figures of this time. While a process runs, they come every ten seconds: wait, or choose
        another time.
      </p>`
    }
    <${Chart}
      label=${`${measure.title}. The figures are in the table below.`}
      times=${times}
      series=${series}
      least=${measure.least}
      write=${measure.write}
      marks=${lines}
      onZoom=${zoom}
    />
    <p class="note">
      ${boundsText(bounds)}. To see a part of it, drag over the chart, or choose another time above.${' '}
      <${TimeLinks} bounds=${bounds} />
    </p>
    <${Folded} summary="The figures of the chart">
      ${() => html`<${FigureTable} history=${history} measure=${measure} />`}
    <//>
    <${Folded} summary=${eventsText(marks.length)}>${() => html`<${EventTable} marks=${marks} />`}<//>
    <${LeftOut} count=${history.marks_left_out} hasMoreActs=${hasMoreActs} />
  `;
}

/** The same time in the other views. */
function TimeLinks({ bounds: { from, to } }: { readonly bounds: Bounds }): VNode {
  const time = { from, to };
  return html`
    Of this time: <a href=${linkTo('failures', null, time)}>failures</a>,${' '}
    <a href=${linkTo('usage', 'records', time)}>requests</a>,${' '}
    <a href=${linkTo('latency', null, time)}>latency</a>,${' '}
    <a href=${linkTo('audit', null, time)}>audit</a>.
  `;
}

/** How many rows of figures are shown at first, and how many more at each wish. */
const rowCounts = { first: 60, more: 500 };

function FigureTable({ history, measure }: { readonly history: History; readonly measure: Measure }): VNode {
  const columns = useMemo(
    (): readonly Column<Figures>[] => [
      { title: 'From', isName: true, cell: ({ at }) => formatTime(at) },
      ...measure.lines.map(({ name, valueOf }) => ({
        title: name,
        isNumber: true,
        cell: (point: Figures) => {
          const value = valueOf(point, history.step_seconds);
          return value === null ? '–' : measure.write(value);
        },
      })),
    ],
    [history, measure],
  );
  const rows = useMemo(() => history.points.toReversed(), [history]);
  return html`
    <${DataTable}
      caption=${measure.title}
      columns=${columns}
      rows=${rows}
      keyOf=${({ at }: Figures) => at}
      empty="No process has written figures of this time."
      paging=${{ ...rowCounts, plural: 'times' }}
    />
  `;
}

const eventColumns: readonly Column<Mark>[] = [
  { title: 'Time', isName: true, cell: ({ at }) => formatTime(at) },
  {
    title: 'What',
    isText: true,
    cell: ({ text, link }) => (link === null ? text : html`<a href=${link}>${text}</a>`),
  },
];

/** What happened beside the requests: each is a dashed line in the chart. */
function EventTable({ marks }: { readonly marks: readonly Mark[] }): VNode {
  const rows = useMemo(() => marks.toReversed(), [marks]);
  return html`<${DataTable}
    caption="Events"
    columns=${eventColumns}
    rows=${rows}
    keyOf=${({ at, text }: Mark) => `${at} ${text}`}
    empty="Nothing was configured, no operator changed anything, and no circuit or process began or ended."
    paging=${{ ...rowCounts, plural: 'events' }}
  />`;
}

/** How many events there are, in words. */
function eventsText(count: number): string {
  if (count === 0) return 'No event';
  return `${formatCount(count)} ${count === 1 ? 'event, the dashed line' : 'events, the dashed lines'}`;
}

interface LeftOutProps {
  /** How many events of processes are left out. */
  readonly count: number;
  readonly hasMoreActs: boolean;
}

/** Which events are not among those that are shown; nothing if all are. */
function LeftOut({ count, hasMoreActs }: LeftOutProps): VNode {
  const said = [
    ...(count === 0 ? [] : [`${formatCount(count)} ${count === 1 ? 'event' : 'events'} of processes`]),
    ...(hasMoreActs ? [`what operators did before the newest ${maxActs} entries of the audit`] : []),
  ];
  return html`<p class="notice" hidden=${said.length === 0}>
    There are too many events. Left out: ${said.join(', and ')}. Choose a shorter time to see more of them.
  </p>`;
}
