import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { orDash, asWords, formatAmount, formatCount, formatDuration } from '../../widgets/format.ts';
import { numberColumn, DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { shownName } from '../../widgets/name.ts';
import { Field } from '../../widgets/field.ts';
import type { Upstream } from './use-upstreams.ts';

type Routes = NonNullable<Upstream['routes']>;
type UpstreamRoute = Routes['data'][number];

/** The parts of a price, each with its name. */
const parts = [
  ['input', 'Input'],
  ['cached_input', 'Cached input'],
  ['cache_write', 'Cache write'],
  ['output', 'Output'],
  ['request', 'Per request'],
] as const;

/** From how many routes on they can be searched. */
const leastSearched = 10;

/** The models that an upstream serves, with their names there and their prices. */
export function RoutesTable({ routes }: { readonly routes: Routes | null }): VNode {
  const [search, setSearch] = useState('');
  const rows = routes?.data ?? [];
  const shown = useMemo(() => rows.filter((row) => hasText(row, search)), [rows, search]);
  const columns = useMemo(() => columnsOf(rows), [rows]);
  if (routes === null)
    return html`<p class="empty">
      The list of its models has not been read yet: the upstream has to answer first.
    </p>`;
  return html`
    ${rows.length >= leastSearched && html`<${Field} label="Search models" type="search" value=${search} onInput=${setSearch} />`}
    <${DataTable}
      caption="Models that it serves; prices in USD per million tokens"
      columns=${columns}
      rows=${shown}
      keyOf=${keyOf}
      empty=${
        rows.length === 0
          ? html`No model has a route to it. Add <code>routes</code> with its name to a model of the config.`
          : 'No model has this text.'
      }
    />
    ${rows.length > 0 && html`<p class="note">Prices in USD per million tokens. The place is that in the model's list of routes.</p>`}
    ${routes.has_more && html`<p class="note">Only the first ${formatCount(rows.length)} models are shown.</p>`}
  `;
}

/** A model may have two routes to the same upstream. */
function keyOf({ model, place }: UpstreamRoute): string {
  return `${place} ${model}`;
}

function hasText({ model, upstream_model: there }: UpstreamRoute, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return [model, there].some((name) => name.toLowerCase().includes(wanted));
}

function columnsOf(rows: readonly UpstreamRoute[]): readonly Column<UpstreamRoute>[] {
  const used = parts.filter(
    ([part]) => part === 'input' || part === 'output' || rows.some(({ price }) => Number(price[part]) !== 0),
  );
  return [
    { title: 'Model', isName: true, sortBy: ({ model }) => model, cell: ({ model }) => shownName(model) },
    {
      title: 'Model there',
      sortBy: ({ upstream_model: there }) => there,
      cell: ({ upstream_model: there }) => html`<code>${shownName(there)}</code>`,
    },
    numberColumn('Place', ({ place }) => place, String),
    ...(rows.some(({ weight }) => weight !== null)
      ? [{ title: 'Weight', isNumber: true, cell: ({ weight }: UpstreamRoute) => weight ?? '–' }]
      : []),
    ...(rows.some(({ measured }) => measured !== null) ? measures : []),
    ...used.map(([part, title]) => ({
      title,
      isNumber: true,
      sortBy: ({ price }: UpstreamRoute) => Number(price[part]),
      cell: ({ price }: UpstreamRoute) => (isFree(price) ? 'free' : formatAmount(price[part])),
    })),
    ...(rows.some(({ price }) => price.above !== null)
      ? [{ title: 'Long inputs', cell: ({ price }: UpstreamRoute) => aboveText(price.above) }]
      : []),
  ];
}

/** What is measured where a policy is set. */
const measures: readonly Column<UpstreamRoute>[] = [
  { title: 'Policy', cell: ({ policy }) => orDash(policy, asWords) },
  { title: 'In flight', isNumber: true, cell: ({ measured }) => measured?.in_flight ?? '–' },
  {
    title: 'First text',
    sortBy: ({ measured }) => measured?.first_text_ms ?? null,
    cell: ({ measured }) => firstTextOf(measured),
  },
];

/** The mean of the recent times to the first text with their 95th percentile, and whether the latest attempt failed. */
function firstTextOf(measured: UpstreamRoute['measured']): string {
  if (measured === null) return '–';
  const { first_text_ms: mean, first_text_p95_ms: p95, failing } = measured;
  const times =
    mean === null || p95 === null ? 'not known' : `${formatDuration(mean)}, p95 ${formatDuration(p95)}`;
  return failing ? `${times}; failed just now` : times;
}

function isFree({ above, ...price }: UpstreamRoute['price']): boolean {
  return above === null && parts.every(([part]) => Number(price[part]) === 0);
}

/** The price of requests whose input is longer than a bound. */
function aboveText(above: UpstreamRoute['price']['above']): string {
  if (above === null) return '–';
  const amounts = parts
    .filter(([part]) => Number(above[part]) !== 0)
    .map(([part, title]) => `${title.toLowerCase()} ${formatAmount(above[part])}`);
  return `above ${formatCount(above.input_tokens)} tokens: ${amounts.join(', ')}`;
}
