import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import type { readLatencies } from '../../../http/admin/latency.ts';
import type { Refusal } from '../../../shared/errors.ts';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import { boundsOf, readTime, timeParameters } from '../../chosen-time.ts';
import type { Bounds, TimeName } from '../../chosen-time.ts';
import { goTo, linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { Chart } from '../../widgets/chart.ts';
import { Bar } from '../../widgets/count-bars.ts';
import { DataTable, numberColumn } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Fault } from '../../widgets/fault.ts';
import { Select } from '../../widgets/field.ts';
import { formatCount, formatDuration, formatPart, shortName } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { boundsText, TimeChoice } from '../../widgets/time-choice.ts';

type Latencies = Exclude<Awaited<ReturnType<typeof readLatencies>>, Refusal>;

/** An upstream and a model there, with how long its answers took. */
type Pair = Latencies['data'][number];

/** What can be compared. */
const measures = {
  first_text_ms: 'Time to first text',
  duration_ms: 'Duration of the call',
} as const;

type MeasureName = keyof typeof measures;

const timeNames: readonly TimeName[] = ['1h', '24h', 'today', '7d', '30d'];

/** Into how many slots a time is cut. */
const slots = 60;

/** The most rows of all pairs that are shown at first, and how many more at each wish. */
const rowCounts = { first: 20, more: 100 };

/** How long upstreams and models took, over time and as a distribution, two of them side by side. */
export function Latency({ route: { query } }: { readonly route: Route }): VNode {
  const time = readTime(query, timeNames, '24h');
  const { answer, error, isWaiting, reload } = useLoaded(JSON.stringify(time), async (signal) => {
    const bounds = boundsOf(time, Date.now());
    return {
      bounds,
      latencies: await callAdmin<Latencies>(adminPath('latency', { ...bounds, slots }), { signal }),
    };
  });
  const show: MeasureName = query.get('show') === 'duration_ms' ? 'duration_ms' : 'first_text_ms';
  const given = { one: query.get('one'), other: query.get('other'), show };
  const go = (changed: Readonly<Record<string, string | null>>): void =>
    goTo(linkTo('latency', null, { ...timeParameters(time), ...given, ...changed }));
  return html`
    <div class="row">
      <${TimeChoice}
        time=${time}
        names=${timeNames}
        onChange=${(next: typeof time) => go(timeParameters(next))}
      />
      <${Select}
        label="Show"
        value=${show}
        options=${Object.entries(measures)}
        onChange=${(name: string) => go({ show: name })}
      />
      <button type="button" onClick=${reload}>Refresh</button>
    </div>
    <${Fault} text=${error} />
    <p class="note" role="status">
      ${isWaiting ? 'Reading …' : answer !== null && `${boundsText(answer.bounds)}.`}
    </p>
    ${answer !== null && html`<${Report} ...${answer} given=${given} go=${go} />`}
  `;
}

interface ReportProps {
  readonly bounds: Bounds;
  readonly latencies: Latencies;
  readonly given: { readonly one: string | null; readonly other: string | null; readonly show: MeasureName };
  readonly go: (changed: Readonly<Record<string, string | null>>) => void;
}

function Report({ bounds, latencies, given, go }: ReportProps): VNode {
  const { data, other: rest } = latencies;
  const { show } = given;
  if (data.length === 0)
    return html`<p class="empty">
      No upstream has answered in this time. Choose a longer one, or <a href=${linkTo('try')}>try a model</a>.
    </p>`;
  const one = data.find((pair) => nameOf(pair) === given.one) ?? data[0];
  const other = data.find((pair) => nameOf(pair) === given.other && pair !== one) ?? null;
  const names = new Set(data.map(nameOf));
  const missing = [given.one, given.other].filter((name) => name !== null && !names.has(name));
  const chosen = [one, other].filter((pair) => pair !== null && pair !== undefined);
  const options = data.map((pair) => [nameOf(pair), titleOf(pair)] as const);
  return html`
    <div class="row">
      <${Select}
        label="Model and upstream"
        value=${one === undefined ? '' : nameOf(one)}
        options=${options}
        onChange=${(name: string) => go({ one: name })}
      />
      <${Select}
        label="Compare with"
        value=${other === null ? '' : nameOf(other)}
        options=${[['', 'No other'], ...options]}
        onChange=${(name: string) => go({ other: name })}
      />
    </div>
    ${
      missing.length > 0 &&
      html`<p class="notice">
        There is no answer of ${missing.map((name) => shortName(name ?? '')).join(' and of ')} in this time.
      </p>`
    }
    <${Comparison} pairs=${chosen} show=${show} latencies=${latencies} />
    <section>
      <h2>All models and upstreams</h2>
      <${DataTable}
        caption=${measures[show]}
        columns=${columnsOf(show, bounds)}
        rows=${data}
        keyOf=${nameOf}
        paging=${{ ...rowCounts, plural: 'pairs' }}
      />
      ${
        rest.pairs > 0 &&
        html`<p class="note">
          ${formatCount(rest.pairs)} further pairs, of ${formatCount(rest.requests)} requests, are not shown.
        </p>`
      }
    </section>
  `;
}

/** The two names as they are shown, each cut if it is very long. */
function titleOf({ model, upstream }: Pair): string {
  return `${shortName(model)} at ${shortName(upstream)}`;
}

/** A model before the upstream that answered for it: the two may have any names, and are told apart by the whole. */
function nameOf({ model, upstream }: Pair): string {
  return `${model} at ${upstream}`;
}

interface ComparisonProps {
  readonly pairs: readonly Pair[];
  readonly show: MeasureName;
  readonly latencies: Latencies;
}

/** The medians of the chosen pairs over time, and their distributions beside each other. */
function Comparison({ pairs, show, latencies }: ComparisonProps): VNode {
  const times = useMemo(() => latencies.slots.map(({ from }) => Date.parse(from) / 1_000), [latencies]);
  const series = useMemo(
    () =>
      pairs.map((pair) => ({
        name: `${titleOf(pair)}, half within`,
        values: pair.slots.map((slot) => slot[show].p50),
      })),
    [latencies, show, pairs.map(nameOf).join('\n')],
  );
  return html`
    <${Chart}
      label=${`${measures[show]}: the median over time. The figures of all time are in the table below.`}
      times=${times}
      series=${series}
      write=${formatDuration}
      least=${100}
    />
    <div class="columns">
      ${pairs.map(
        (pair) => html`
          <section key=${nameOf(pair)}>
            <h2>${titleOf(pair)}</h2>
            <p class="note">${quantilesText(pair, show)}</p>
            <${Distribution} pair=${pair} show=${show} />
          </section>
        `,
      )}
    </div>
    ${
      latencies.slots.some(({ is_complete: isComplete }) => !isComplete) &&
      html`<p class="note">
        There are so many requests that of some times only the newest are counted: choose a shorter time.
      </p>`
    }
  `;
}

function quantilesText(pair: Pair, show: MeasureName): string {
  const { p50, p95, p99, requests } = pair[show];
  if (p50 === null || p95 === null || p99 === null) return 'No answer has this time.';
  return `Half of ${formatCount(requests)} within ${formatDuration(p50)}, 95 % within ${formatDuration(p95)}, 99 % within ${formatDuration(p99)}.`;
}

/** How many answers took how long. */
function Distribution({ pair, show }: { readonly pair: Pair; readonly show: MeasureName }): VNode | null {
  const { buckets, requests } = pair[show];
  const most = Math.max(1, ...buckets.map((bucket) => bucket.requests));
  if (buckets.length === 0) return null;
  return html`
    <ul class="bars">
      ${buckets.map(
        ({ up_to_ms: upToMs, requests: count }) => html`
          <li key=${upToMs}>
            <span>${upToMs === null ? 'longer' : `up to ${formatDuration(upToMs)}`}</span>
            <${Bar} part=${count / most} />
            <span class="number">${formatPart(count / requests)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}

function columnsOf(show: MeasureName, { from, to }: Bounds): readonly Column<Pair>[] {
  return [
    {
      title: 'Model',
      isName: true,
      sortBy: ({ model }) => model,
      cell: ({ model, upstream }) =>
        html`<a href=${linkTo('usage', 'records', { model, upstream, from, to })}>${shownName(model)}</a>`,
    },
    {
      title: 'Upstream',
      sortBy: ({ upstream }) => upstream,
      cell: ({ upstream }) => html`<a href=${linkTo('upstreams', upstream)}>${shownName(upstream)}</a>`,
    },
    numberColumn('Requests', ({ requests }) => requests),
    numberColumn('Half within', (pair) => pair[show].p50, formatDuration),
    numberColumn('95 % within', (pair) => pair[show].p95, formatDuration),
    numberColumn('99 % within', (pair) => pair[show].p99, formatDuration),
  ];
}
