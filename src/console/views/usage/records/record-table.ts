import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import type { PresentedRecord } from '../../../../http/present/record.ts';
import { linkTo } from '../../../route.ts';
import { DataTable } from '../../../widgets/data-table.ts';
import type { Column } from '../../../widgets/data-table.ts';
import { formatAmount, formatCount, formatDuration, formatTime, shortId } from '../../../widgets/format.ts';
import { Outcome } from '../../../widgets/outcome.ts';
import { useKeyNames } from '../use-key-names.ts';

interface Props {
  readonly rows: readonly PresentedRecord[];
  /** Whether there are older requests. */
  readonly hasMore: boolean;
}

/** Requests with what matters of each; its id leads to its life. */
export function RecordTable({ rows, hasMore }: Props): VNode {
  const names = useKeyNames(useMemo(() => rows.map(({ key_id: id }) => id), [rows]));
  const columns = useMemo(() => columnsOf(rows, names), [rows, names]);
  return html`<${DataTable}
    caption="Requests"
    columns=${columns}
    rows=${rows}
    keyOf=${(row: PresentedRecord) => row.request_id}
    empty=${
      hasMore
        ? 'None of the requests that were looked through fits. Go on with the older ones.'
        : html`No request fits. Choose another <a href=${linkTo('usage')}>time</a>, or take away a filter.`
    }
  />`;
}

function columnsOf(
  rows: readonly PresentedRecord[],
  names: ReadonlyMap<string, string>,
): readonly Column<PresentedRecord>[] {
  const hasTags = rows.some(({ tag }) => tag !== null);
  return [
    {
      title: 'Request',
      isName: true,
      cell: ({ request_id: id }) =>
        html`<a href=${linkTo('usage', id)} title=${id}><code>${shortId(id)}</code></a>`,
    },
    {
      title: 'Arrived',
      sortBy: ({ created_at: at }) => Date.parse(at),
      cell: ({ created_at: at }) => formatTime(at),
    },
    {
      title: 'Key',
      sortBy: ({ key_id: id }) => names.get(id) ?? id,
      cell: ({ key_id: id }) => html`<a href=${linkTo('keys', id)}>${names.get(id) ?? shortId(id)}</a>`,
    },
    { title: 'Model', sortBy: ({ model }) => model, cell: ({ model }) => model },
    { title: 'Upstream', sortBy: ({ upstream }) => upstream, cell: ({ upstream }) => upstream ?? '–' },
    ...(hasTags
      ? [
          {
            title: 'Tag',
            sortBy: ({ tag }: PresentedRecord) => tag,
            cell: ({ tag }: PresentedRecord) => tag ?? '–',
          },
        ]
      : []),
    {
      title: 'Outcome',
      sortBy: ({ outcome }) => outcome,
      cell: ({ outcome }) => html`<${Outcome} name=${outcome} />`,
    },
    { title: 'Status', isNumber: true, sortBy: ({ status }) => status, cell: ({ status }) => status ?? '–' },
    ...measured,
  ];
}

const measured: readonly Column<PresentedRecord>[] = [
  {
    title: 'First text',
    isNumber: true,
    sortBy: ({ timings }) => timings.first_byte_ms,
    cell: ({ timings }) => durationOf(timings.first_byte_ms),
  },
  {
    title: 'Total',
    isNumber: true,
    sortBy: ({ timings }) => timings.total_ms,
    cell: ({ timings }) => durationOf(timings.total_ms),
  },
  {
    title: 'Input tokens',
    isNumber: true,
    sortBy: ({ usage }) => usage?.input_tokens ?? null,
    cell: ({ usage }) => (usage === null ? '–' : formatCount(usage.input_tokens)),
  },
  {
    title: 'Output tokens',
    isNumber: true,
    sortBy: ({ usage }) => usage?.output_tokens ?? null,
    cell: ({ usage }) => (usage === null ? '–' : formatCount(usage.output_tokens)),
  },
  {
    title: 'Charge',
    isNumber: true,
    sortBy: ({ charge }) => Number(charge),
    cell: ({ charge }) => formatAmount(charge),
  },
];

function durationOf(milliseconds: number | null): string {
  return milliseconds === null ? '–' : formatDuration(milliseconds);
}
