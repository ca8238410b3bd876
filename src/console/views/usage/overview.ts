import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Figure, Figures } from '../../widgets/figure.ts';
import { formatDay } from './format-day.ts';
import { viewersZone } from '../../widgets/format.ts';
import { Controls } from './controls.ts';
import { CsvButton } from './csv-button.ts';
import { FilterList } from './filter-list.ts';
import { GroupTable, writeMeasure } from './group-table.ts';
import { groups, measureNames, measureTitles } from './groups.ts';
import { OpenRequest } from './open-request.ts';
import { daysOf, timeRange } from './time-range.ts';
import type { TimeRange } from './time-range.ts';
import { UsageChart } from './usage-chart.ts';
import { filterParameters, readUsageQuery, recordsLink, usageLink } from './usage-query.ts';
import type { UsageQuery } from './usage-query.ts';
import { useCourse, useTotals } from './use-report.ts';
import type { Totals } from './use-report.ts';

/** The sums of a time: over its hours or days, and for each group. */
export function Overview({ search }: { readonly search: URLSearchParams }): VNode {
  const query = readUsageQuery(search);
  const days = daysOf(query.range, query.days, Date.now());
  const isForward = days.first <= days.last;
  const range = useMemo(() => (isForward ? timeRange(days, Date.now()) : null), [days.first, days.last]);
  const totals = useTotals(query, range);
  const course = useCourse(query, range, totals.answer);
  const reload = (): void => {
    totals.reload();
    course.reload();
  };
  return html`
    <div class="split">
      <${Controls} query=${query} days=${days} />
      <${OpenRequest} />
    </div>
    <${FilterList}
      filters=${query.filters}
      linkOf=${(filters: UsageQuery['filters']) => usageLink({ ...query, filters })}
    />
    <${Fault} text=${isForward ? (totals.error ?? course.error) : 'The first day is after the last one.'} />
    ${range !== null && html`<${RangeLine} range=${range} onReload=${reload} />`}
    ${range !== null && totals.answer !== null && html`<${Sums} query=${query} range=${range} totals=${totals.answer} course=${course.answer} />`}
  `;
}

/** Which time is shown, in which zone. */
function RangeLine({ range, onReload }: { readonly range: TimeRange; readonly onReload: () => void }): VNode {
  const { first, last, note, period } = range;
  const days = first === last ? formatDay(first) : `${formatDay(first)} to ${formatDay(last)}`;
  return html`
    <p class="note">
      ${days}, ${period === 'day' ? 'in UTC' : `in your zone, ${viewersZone}`}. ${note}${' '}
      <button type="button" class="small" onClick=${onReload}>Read again</button>
    </p>
  `;
}

interface SumsProps {
  readonly query: UsageQuery;
  readonly range: TimeRange;
  readonly totals: Totals;
  readonly course: Parameters<typeof UsageChart>[0]['course'] | null;
}

function Sums({ query, range, totals, course }: SumsProps): VNode {
  const { by, show, filters } = query;
  const { all } = totals;
  if (all === null || totals.groups.length === 0)
    return html`
      <p class="empty">
        No request of this time has ended. Choose another time, look at
        <a href=${linkTo('now')}> what runs now</a>, or <a href=${linkTo('try')}>try a model</a>.
      </p>
    `;
  return html`
    <${Figures}>
      ${measureNames.map(
        (name) =>
          html`<${Figure} key=${name} label=${measureTitles[name]} value=${writeMeasure(all, name)} />`,
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
      <p><a href=${recordsLink(filters, range)}>All requests of this time</a></p>
      <${GroupTable}
        key=${`${by} ${range.from} ${range.to}`}
        query=${query}
        range=${range}
        totals=${totals}
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
