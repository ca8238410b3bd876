import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { linkTo, goTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Figure, Figures } from '../../widgets/facts.ts';
import { formatChange, formatShort, shortAmount, viewersZone } from '../../widgets/format.ts';
import { Field, Select } from '../../widgets/field.ts';
import { readCsv } from '../../api/admin-api.ts';
import { useAction } from '../../api/use-action.ts';
import { saveFile } from '../../widgets/save-file.ts';
import { Records } from './records.ts';
import { RequestLife } from './request-life.ts';
import { formatDay, daysOf, timeRange, rangeBefore, isDay, rangeNames, rangeTitles } from './time-range.ts';
import type { TimeRange, Days, RangeName } from './time-range.ts';
import { FilterList } from './filter-list.ts';
import { GroupTable, writeMeasure } from './group-table.ts';
import { groups, measureNames, measureOf, measureTitles, groupNames } from './groups.ts';
import type { GroupName, MeasureName, UsageRow } from './groups.ts';
import { UsageChart } from './usage-chart.ts';
import { filterParameters, readUsageQuery, recordsLink, usageLink } from './usage-query.ts';
import type { UsageQuery } from './usage-query.ts';
import { useCourse, useTotals } from './use-report.ts';
import type { Totals } from './use-report.ts';

/** Who used what: sums over time, the requests behind them, and the life of one request. */
export function Usage({ route }: { readonly route: Route }): VNode {
  const { id, query } = route;
  if (id === null) return html`<${Overview} search=${query} />`;
  if (id === 'records') return html`<${Records} search=${query} />`;
  return html`<${RequestLife} key=${id} id=${id} />`;
}

/** The sums of a time: over its hours or days, and for each group. */
function Overview({ search }: { readonly search: URLSearchParams }): VNode {
  const query = readUsageQuery(search);
  const days = daysOf(query.range, query.days, Date.now());
  const isForward = days.first <= days.last;
  const range = useMemo(() => (isForward ? timeRange(days, Date.now()) : null), [days.first, days.last]);
  // As time goes on, more of the time before is compared.
  const [round, setRound] = useState(0);
  const before = useMemo(() => (range === null ? null : rangeBefore(range, Date.now())), [range, round]);
  const totals = useTotals(query, range);
  const totalsBefore = useTotals(query, before);
  const course = useCourse(query, range, totals.answer);
  const reload = (): void => {
    setRound(round + 1);
    totals.reload();
    totalsBefore.reload();
    course.reload();
  };
  return html`
    <${Controls} query=${query} days=${days} />
    <${FilterList}
      filters=${query.filters}
      linkOf=${(filters: UsageQuery['filters']) => usageLink({ ...query, filters })}
    />
    <${Fault}
      text=${isForward ? (totals.error ?? totalsBefore.error ?? course.error) : 'The first day is after the last one.'}
    />
    ${range !== null && html`<${RangeLine} range=${range} isCompared=${before !== null} onReload=${reload} />`}
    ${range !== null && totals.answer !== null && html`<${Sums} query=${query} range=${range} totals=${totals.answer} before=${totalsBefore.answer} course=${course.answer} />`}
  `;
}

interface RangeProps {
  readonly range: TimeRange;
  /** Whether the time before is known. */
  readonly isCompared: boolean;
  readonly onReload: () => void;
}

/** Which time is shown, in which zone. */
function RangeLine({ range, isCompared, onReload }: RangeProps): VNode {
  const { first, last, note, period } = range;
  const days = first === last ? formatDay(first) : `${formatDay(first)} to ${formatDay(last)}`;
  return html`
    <p class="note">
      ${days}, ${period === 'day' ? 'in UTC' : `in your zone, ${viewersZone}`}. ${note}${' '}
      ${isCompared && 'Compared with as many days before, as far as these have come.'}${' '}
      <button type="button" class="small" onClick=${onReload}>Refresh</button>
    </p>
  `;
}

interface SumsProps {
  readonly query: UsageQuery;
  readonly range: TimeRange;
  readonly totals: Totals;
  /** Those of the same time before; `null` where they are not known. */
  readonly before: Totals | null;
  readonly course: Parameters<typeof UsageChart>[0]['course'] | null;
}

function Sums({ query, range, totals, before, course }: SumsProps): VNode {
  const { by, show, filters } = query;
  const { all } = totals;
  if (all === null || totals.groups.length === 0)
    return html`
      <p class="empty">
        No request has ended in this period. Choose another one, look at ${' '}<a href=${linkTo('now')}
          >what runs now</a
        >, or <a href=${linkTo('try')}>try a model</a>.
      </p>
    `;
  return html`
    <${Figures}>
      ${measureNames.map(
        (name) =>
          html`<${Figure}
            key=${name}
            label=${measureTitles[name]}
            value=${writeMeasure(all, name)}
            note=${before === null ? undefined : changeNote(all, before, name)}
          />`,
      )}
    <//>
    <section>
      <h2>${measureTitles[show]} per ${range.unit}</h2>
      ${
        course !== null &&
        html`<${UsageChart}
          course=${course}
          range=${range}
          by=${by}
          show=${show}
          count=${totals.groups.length}
        />`
      }
    </section>
    <section>
      <h2>By ${by}</h2>
      <p><a href=${recordsLink(filters, range)}>All requests in this period</a></p>
      <${GroupTable}
        key=${`${by} ${range.from} ${range.to}`}
        query=${query}
        range=${range}
        totals=${totals}
        before=${before}
      />
      <${CsvButton}
        parameters=${{ ...filterParameters(filters), by: `${range.period},${by}`, from: range.from, to: range.to }}
        name=${`usage-${range.first}-${range.last}-by-${by}.csv`}
      />
      <p class="note">
        ${`The ${groups[by].plural} with the most come first. The file has a row for each ${range.period} and ${by}, in UTC.`}
      </p>
    </section>
  `;
}

/** How a sum has changed, with what it was. */
function changeNote(all: UsageRow, { all: allBefore }: Totals, name: MeasureName): string {
  if (allBefore === null) return 'none in the time before';
  const change = formatChange(measureOf(all, name), measureOf(allBefore, name));
  const was = name === 'charge' ? shortAmount(allBefore.charge) : formatShort(allBefore[name]);
  return `${change} against ${was} before`;
}

interface ControlsProps {
  readonly query: UsageQuery;
  /** The days that are shown, from which other ones are chosen. */
  readonly days: Days;
}

/** What is shown, for which time and by what. Each choice is a place of its own, with a link. */
function Controls({ query, days }: ControlsProps): VNode {
  const change = (changed: Partial<UsageQuery>): void => goTo(usageLink({ ...query, ...changed }));
  const changeDays = (changed: Partial<Days>): void => {
    const next = { ...days, ...changed };
    // A date that is being typed is not one yet.
    if (isDay(next.first) && isDay(next.last)) change({ range: 'days', days: next });
  };
  return html`
    <div class="row">
      <${Select}
        label="Time"
        value=${query.range}
        options=${rangeNames.map((name) => [name, rangeTitles[name]])}
        onChange=${(range: RangeName) => change({ range, days })}
      />
      ${
        query.range === 'days' &&
        html`
          <${Field}
            label="First day"
            type="date"
            value=${days.first}
            onInput=${(first: string) => changeDays({ first })}
          />
          <${Field}
            label="Last day"
            type="date"
            value=${days.last}
            onInput=${(last: string) => changeDays({ last })}
          />
        `
      }
      <${Select}
        label="Group by"
        value=${query.by}
        options=${groupNames.map((name) => [name, groups[name].title])}
        onChange=${(by: GroupName) => change({ by })}
      />
      <${Select}
        label="Metric"
        value=${query.show}
        options=${measureNames.map((name) => [name, measureTitles[name]])}
        onChange=${(show: MeasureName) => change({ show })}
      />
    </div>
  `;
}

/** How many pages of 1,000 rows are saved. */
const maxPages = 100;

interface CsvProps {
  /** The parameters of the usage that is saved. */
  readonly parameters: Readonly<Record<string, string | null>>;
  readonly name: string;
}

/** Saves usage as CSV. A link could not: it is the request's headers that ask for CSV, and a list has several pages. */
function CsvButton({ parameters, name }: CsvProps): VNode {
  const [said, setSaid] = useState('');
  const { run, isWaiting, error } = useAction(async () => {
    setSaid('');
    const { text, isWhole } = await readCsv('usage', parameters, maxPages);
    saveFile(name, 'text/csv', text);
    setSaid(
      isWhole ? 'Saved.' : `Saved the first ${maxPages},000 rows; choose a shorter time for all of them.`,
    );
  });
  return html`
    <p>
      <button type="button" onClick=${() => run()}>Save as CSV</button>${' '}
      <span class="note" role="status">${isWaiting ? 'Reading …' : said}</span>
    </p>
    <${Fault} text=${error} />
  `;
}
