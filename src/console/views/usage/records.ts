import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { PresentedList } from '../../../http/present/list.ts';
import type { PresentedRecord } from '../../../http/present/record.ts';
import { textColumn, numberColumn, amountColumn, DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { goTo, linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { formatTime, formatDuration, shortId } from '../../widgets/format.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { Outcome } from '../../widgets/badges.ts';
import { useKeyNames } from '../../api/use-key-names.ts';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { FilterList } from './filter-list.ts';
import { RecordForm } from './record-form.ts';
import { filterParameters, readRecordFilters, recordsLink } from './usage-query.ts';
import type { RecordFilters } from './usage-query.ts';

/** The requests of a time, newest first, page by page. */
export function Records({ search }: { readonly search: URLSearchParams }): VNode {
  const filters = readRecordFilters(search);
  const time = { from: search.get('from'), to: search.get('to') };
  const before = search.get('before');
  const { answer, error, isWaiting, reload } = useRecords(filters, time, before);
  return html`
    <p><a href=${linkTo('usage')}>← Usage</a></p>
    <${PlaceHeading} place=${before}>Requests, newest first<//>
    <${RecordForm}
      filters=${filters}
      onChange=${(changed: RecordFilters) => goTo(recordsLink(changed, time))}
    />
    <${FilterList} filters=${filters} linkOf=${(others: RecordFilters) => recordsLink(others, time)} />
    <p class="note">
      ${writeTime(time)}${' '}
      <button type="button" class="small" onClick=${reload}>Refresh</button>
    </p>
    <${Fault} text=${error} />
    <p class="note" role="status">${isWaiting ? 'Reading …' : ''}</p>
    ${
      answer !== null &&
      html`
        <${RecordTable} rows=${answer.data} hasMore=${answer.next !== null} />
        <nav class="row" aria-label="Pages">
          ${before !== null && html`<a href=${recordsLink(filters, time)}>Newest</a>`}
          ${answer.next !== null && html`<a href=${recordsLink(filters, time, answer.next)}>Older</a>`}
        </nav>
      `
    }
  `;
}

function writeTime({ from, to }: { readonly from: string | null; readonly to: string | null }): string {
  const [first, end] = [from, to].map((time) =>
    time === null || Number.isNaN(Date.parse(time)) ? null : formatTime(time),
  );
  if (!first && !end) return 'Of all time.';
  if (!first) return `Before ${end}.`;
  return end ? `From ${first} to ${end}.` : `Since ${first}.`;
}

interface Props {
  readonly rows: readonly PresentedRecord[];
  /** Whether there are older requests. */
  readonly hasMore: boolean;
}

/** Requests with what matters of each; its id leads to its life. */
function RecordTable({ rows, hasMore }: Props): VNode {
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
    textColumn('Model', ({ model }) => model),
    textColumn('Upstream', ({ upstream }) => upstream),
    ...(hasTags ? [textColumn<PresentedRecord>('Tag', ({ tag }) => tag)] : []),
    {
      title: 'Outcome',
      sortBy: ({ outcome }) => outcome,
      cell: ({ outcome }) => html`<${Outcome} name=${outcome} />`,
    },
    numberColumn('Status', ({ status }) => status),
    numberColumn('First text', ({ timings }) => timings.first_byte_ms, formatDuration),
    numberColumn('Total', ({ timings }) => timings.total_ms, formatDuration),
    numberColumn('Input tokens', ({ usage }) => usage?.input_tokens ?? null),
    numberColumn('Output tokens', ({ usage }) => usage?.output_tokens ?? null),
    amountColumn('Charge', ({ charge }) => charge),
  ];
}

/** How many requests a page has. */
const pageSize = 100;

interface Time {
  readonly from: string | null;
  readonly to: string | null;
}

/** Reads a page of requests: the newest, or those before a cursor. */
function useRecords(filters: RecordFilters, time: Time, before: string | null) {
  const parameters = { ...filterParameters(filters), ...time, before, limit: pageSize };
  return useAnswer<PresentedList<PresentedRecord>>(adminPath('records', parameters));
}
