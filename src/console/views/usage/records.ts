import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Outcome as RequestOutcome } from '../../../domain/money/consumption.ts';
import type { PresentedRecord } from '../../../http/present/record.ts';
import { textColumn, numberColumn, amountColumn, DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { goTo, linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Select } from '../../widgets/field.ts';
import { asWords, formatCount, formatTime, formatDuration, shortId } from '../../widgets/format.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { Outcome } from '../../widgets/badges.ts';
import { useKeyNames } from '../../api/use-key-names.ts';
import { readPages } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import type { Asked } from '../../api/use-loaded.ts';
import { FilterList } from './filter-list.ts';
import { readFilters, recordsLink } from './usage-query.ts';
import type { Filters } from './usage-query.ts';
import { none } from './groups.ts';

/** How a request can have ended, in the order of the list; one that is missing does not compile. */
const outcomes = {
  completed: true,
  incomplete: true,
  refused: true,
  upstream_failed: true,
  upstream_truncated: true,
  first_byte_timeout: true,
  idle_timeout: true,
  total_timeout: true,
  client_closed: true,
  cancelled: true,
  drained: true,
  crashed: true,
  lost: true,
  server_error: true,
} satisfies Record<RequestOutcome, true>;

/** The requests of a time, newest first, page by page. */
export function Records({ search }: { readonly search: URLSearchParams }): VNode {
  const filters = readFilters(search);
  const time = { from: search.get('from'), to: search.get('to') };
  const before = search.get('before');
  const { answer, error, isWaiting, reload } = useRecords(filters, time, before);
  return html`
    <p><a href=${linkTo('usage')}>← Usage</a></p>
    <${PlaceHeading} place=${before}>Requests, newest first<//>
    <div class="row">
      <${Select}
        label="Outcome"
        value=${filters.outcome ?? ''}
        options=${[['', 'any'], ...Object.keys(outcomes).map((name) => [name, asWords(name)])]}
        onChange=${(outcome: string) => goTo(recordsLink({ ...filters, outcome }, time))}
      />
    </div>
    <${FilterList} filters=${filters} linkOf=${(others: Filters) => recordsLink(others, time)} />
    <p class="note">
      ${writeTime(time)}${' '}
      <button type="button" class="small" onClick=${reload}>Refresh</button>
    </p>
    <${Fault} text=${error} />
    <p class="note" role="status">${isWaiting ? 'Reading …' : ''}</p>
    ${
      answer !== null &&
      html`
        <${RecordTable} rows=${answer.rows} hasMore=${answer.next !== null} />
        ${
          answer.read > answer.rows.length &&
          html`<p class="note">
            ${formatCount(answer.read)} requests were looked through for these filters.
          </p>`
        }
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

/** With filters that the gateway does not know here, requests are looked through in pages of this size, up to this many. */
const searchedSize = 200;
const maxSearchedPages = 25;

interface RecordPage {
  readonly rows: readonly PresentedRecord[];
  readonly next: string | null;
  /** How many requests were read for them. */
  readonly read: number;
}

interface Time {
  readonly from: string | null;
  readonly to: string | null;
}

/** Reads a page of requests: the newest, or those before a cursor. */
function useRecords(filters: Filters, { from, to }: Time, before: string | null): Asked<RecordPage> {
  const { key, model, ...own } = filters;
  const isSearched = Object.values(own).some((value) => value !== null);
  const limit = isSearched ? searchedSize : pageSize;
  const parameters = { key, model, from, to, before, limit };
  return useLoaded(JSON.stringify([filters, from, to, before]), async (signal) => {
    const rows: PresentedRecord[] = [];
    let next = before;
    let read = 0;
    for (let page = 0; page < (isSearched ? maxSearchedPages : 1) && rows.length < pageSize; page++) {
      const found = await readPages<PresentedRecord>(
        'records',
        { ...parameters, before: next },
        { cursor: 'before', maxPages: 1, signal },
      );
      read += found.rows.length;
      rows.push(...found.rows.filter((row) => isWanted(row, own)));
      next = found.next;
      if (next === null) break;
    }
    return { rows, next, read };
  });
}

function isWanted(
  { group, upstream, outcome, tag }: PresentedRecord,
  wanted: Pick<Filters, 'group' | 'upstream' | 'outcome' | 'tag'>,
): boolean {
  return (
    (wanted.upstream === null || wanted.upstream === upstream) &&
    (wanted.outcome === null || wanted.outcome === outcome) &&
    (wanted.group === null || wanted.group === (group ?? none)) &&
    (wanted.tag === null || wanted.tag === (tag ?? none))
  );
}
