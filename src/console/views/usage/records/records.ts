import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Outcome } from '../../../../domain/money/consumption.ts';
import { goTo, linkTo } from '../../../route.ts';
import { Fault } from '../../../widgets/fault.ts';
import { Select } from '../../../widgets/field.ts';
import { asWords, formatCount, formatTime } from '../../../widgets/format.ts';
import { PlaceHeading } from '../../../widgets/place-heading.ts';
import { FilterList } from '../filter-list.ts';
import { OpenRequest } from '../open-request.ts';
import { readFilters, recordsLink } from '../usage-query.ts';
import type { Filters } from '../usage-query.ts';
import { RecordTable } from './record-table.ts';
import { useRecords } from './use-records.ts';

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
} satisfies Record<Outcome, true>;

/** The requests of a time, newest first, page by page. */
export function Records({ search }: { readonly search: URLSearchParams }): VNode {
  const filters = readFilters(search);
  const time = { from: search.get('from'), to: search.get('to') };
  const before = search.get('before');
  const { answer, error, isWaiting, reload } = useRecords(filters, time, before);
  return html`
    <p><a href=${linkTo('usage')}>← Usage</a></p>
    <${PlaceHeading} place=${before}>Requests, newest first<//>
    <div class="split">
      <div class="row">
        <${Select}
          label="Outcome"
          value=${filters.outcome ?? ''}
          options=${[['', 'any'], ...Object.keys(outcomes).map((name) => [name, asWords(name)])]}
          onChange=${(outcome: string) => goTo(recordsLink({ ...filters, outcome }, time))}
        />
      </div>
      <${OpenRequest} />
    </div>
    <${FilterList} filters=${filters} linkOf=${(others: Filters) => recordsLink(others, time)} />
    <p class="note">
      ${writeTime(time)}${' '}
      <button type="button" class="small" onClick=${reload}>Read again</button>
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
