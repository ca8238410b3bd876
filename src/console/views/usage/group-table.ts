import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Field } from '../../widgets/field.ts';
import { amountOf } from '../../widgets/amount.ts';
import { Bar } from '../../widgets/count-bars.ts';
import { formatAmount, formatChange, formatCount, formatPart, shortName } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { groups, measureNames, measureOf, measureTitles, sortGroups } from './groups.ts';
import type { MeasureName, UsageRow } from './groups.ts';
import type { TimeRange } from './time-range.ts';
import { recordsLink, usageLink } from './usage-query.ts';
import type { UsageQuery } from './usage-query.ts';
import type { Totals } from './use-report.ts';

/** How many rows are shown at first, and how many more at each wish. */
const rowCounts = { first: 50, more: 500 };

/** From how many rows on there is a filter. */
const minFiltered = 10;

interface Props {
  readonly query: UsageQuery;
  readonly range: TimeRange;
  readonly totals: Totals;
  /** Those of the same time before; `null` where they are not known. */
  readonly before: Totals | null;
}

/** The exact sums of each group, the largest first, with the ways to its requests. */
export function GroupTable({ query, range, totals, before }: Props): VNode {
  const { by, show } = query;
  const [filter, setFilter] = useState('');
  const wanted = filter.trim().toLowerCase();
  const sorted = useMemo(() => sortGroups(totals.groups, show), [totals, show]);
  const found = useMemo(() => sorted.filter((row) => hasText(row, by, wanted)), [sorted, by, wanted]);
  const columns = useMemo(
    () => columnsOf(query, range, totals, before),
    [JSON.stringify(query), range, totals, before],
  );
  const { plural } = groups[by];
  return html`
    ${
      totals.hasMore &&
      html`<p class="notice">
        There are more than ${formatCount(totals.groups.length)} ${plural}: only those are compared. The
        totals above are of all. Choose a filter or another group to see the rest.
      </p>`
    }
    ${
      totals.groups.length > minFiltered &&
      html`<${Field}
        label=${`Find among the ${plural}`}
        type="search"
        value=${filter}
        onInput=${setFilter}
      />`
    }
    <${DataTable}
      caption=${`Usage by ${by}`}
      columns=${columns}
      rows=${found}
      keyOf=${(row: UsageRow) => groups[by].valueOf(row) ?? ''}
      empty=${`None of the ${plural} has this text.`}
      paging=${{ ...rowCounts, plural }}
    />
  `;
}

function hasText(row: UsageRow, by: UsageQuery['by'], wanted: string): boolean {
  const { nameOf, valueOf } = groups[by];
  return [nameOf(row), valueOf(row) ?? ''].some((text) => text.toLowerCase().includes(wanted));
}

function columnsOf(
  query: UsageQuery,
  range: TimeRange,
  totals: Totals,
  before: Totals | null,
): readonly Column<UsageRow>[] {
  const { by, filters } = query;
  const { title, nameOf, valueOf, next } = groups[by];
  return [
    {
      title,
      isName: true,
      sortBy: nameOf,
      cell: (row) => {
        const value = valueOf(row);
        const name = shownName(nameOf(row));
        if (value === null) return name;
        return html`<a href=${recordsLink({ ...filters, [by]: value }, range)}>${name}</a>`;
      },
    },
    ...measureNames.map((name) => ({
      title: measureTitles[name],
      isNumber: true,
      sortBy: (row: UsageRow) => measureOf(row, name),
      cell: (row: UsageRow) => writeMeasure(row, name),
    })),
    shareColumn(query, totals),
    ...(before === null || before.hasMore ? [] : [changeColumn(query, before)]),
    {
      title: 'More',
      cell: (row) => {
        const value = valueOf(row);
        if (value === null) return '–';
        const link = usageLink({ ...query, by: next, filters: { ...filters, [by]: value } });
        return html`<a href=${link}>by ${next}<span class="unseen"> of ${shortName(nameOf(row))}</span></a>`;
      },
    },
  ];
}

/** Which part of all a group has, as a bar beside the number. */
function shareColumn({ show }: UsageQuery, { all }: Totals): Column<UsageRow> {
  const total = all === null ? 0 : measureOf(all, show);
  const shareOf = (row: UsageRow): number => (total === 0 ? 0 : measureOf(row, show) / total);
  return {
    title: `Share of ${measureTitles[show].toLowerCase()}`,
    isNumber: true,
    sortBy: shareOf,
    cell: (row) =>
      html`<span class="share"><${Bar} part=${shareOf(row)} />${formatPart(shareOf(row))}</span>`,
  };
}

/** How what is shown of a group has changed since the time before. */
function changeColumn({ by, show }: UsageQuery, before: Totals): Column<UsageRow> {
  const { valueOf } = groups[by];
  const sums = new Map(before.groups.map((row) => [valueOf(row), row]));
  return {
    title: 'Change',
    isNumber: true,
    cell: (row) => {
      const was = sums.get(valueOf(row));
      const change = formatChange(measureOf(row, show), was === undefined ? 0 : measureOf(was, show));
      return was === undefined
        ? change
        : html`<span title=${`before: ${exactMeasure(was, show)}`}>${change}</span>`;
    },
  };
}

function exactMeasure(row: UsageRow, name: MeasureName): string {
  return name === 'charge' ? formatAmount(row.charge) : formatCount(row[name]);
}

/** A count in full; amounts to four significant digits. */
export function writeMeasure(row: UsageRow, name: MeasureName): ComponentChildren {
  return name === 'charge' ? amountOf(row.charge) : formatCount(row[name]);
}
