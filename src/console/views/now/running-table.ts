import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import type { PresentedStatusRow } from '../../../http/present/status.ts';
import { orDash, formatCount, formatDuration, formatWait, shortId } from '../../widgets/format.ts';
import { textColumn, numberColumn, DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session.ts';
import { linkTo } from '../../route.ts';
import { Confirm } from '../../widgets/dialog.ts';
import { Field } from '../../widgets/field.ts';
import { shownName } from '../../widgets/name.ts';

type RunningRow = PresentedStatusRow;

interface Props {
  readonly rows: readonly RunningRow[];
  /** The gateway's time in milliseconds. */
  readonly now: number;
  /** How many requests there are, of which `rows` may be the oldest. */
  readonly total: number;
  /** Whether the requests of all nodes are known. */
  readonly isComplete: boolean;
  /** Asks for more rows; `null` if there are no more to ask for. */
  readonly onMore: (() => void) | null;
}

/** The requests in progress, with a filter and a way to cancel each. */
export function RunningTable({ rows, now, total, isComplete, onMore }: Props): VNode {
  const [filter, setFilter] = useState('');
  const mayCancel = useMayChange();
  const shown = useMemo(() => rows.filter((row) => hasText(row, filter)), [rows, filter]);
  const columns = useMemo(() => columnsOf(rows, now, mayCancel), [rows, now, mayCancel]);
  const hidden = total - rows.length;
  return html`
    ${
      (rows.length > 0 || filter !== '') &&
      html`<${Field} label="Filter" type="search" value=${filter} onInput=${setFilter} />`
    }
    ${
      !isComplete &&
      html`<p class="notice">
        The requests of other nodes can not be read; only those of this node are shown.
      </p>`
    }
    <${DataTable}
      caption="Requests in progress"
      columns=${columns}
      rows=${shown}
      keyOf=${(row: RunningRow) => row.request_id}
      empty=${
        rows.length === 0
          ? html`No request is in progress. <a href=${linkTo('try')}>Try a model</a>.`
          : 'No request in progress has this text.'
      }
    />
    ${
      hidden > 0 &&
      html`
        <p class="note">
          ${formatCount(hidden)} younger requests are not shown.
          ${onMore !== null && html` <button type="button" class="small" onClick=${onMore}>Show more</button>`}
        </p>
      `
    }
  `;
}

/** Whether a text occurs in what a row shows. */
function hasText(row: RunningRow, text: string): boolean {
  const { request_id, key_id, key_name, model, protocol, mode, node, joined } = row;
  const wanted = text.trim().toLowerCase();
  const derived = [upstreamOf(row), clientsOf(row)];
  return [request_id, key_id, key_name, model, protocol, mode, node, joined, ...derived].some((part) =>
    (part ?? '').toLowerCase().includes(wanted),
  );
}

function columnsOf(
  rows: readonly RunningRow[],
  now: number,
  mayCancel: boolean,
): readonly Column<RunningRow>[] {
  const hasNodes = rows.some(({ node }) => node !== null);
  return [
    { title: 'Request', isName: true, cell: requestCell },
    numberColumn('Age', (row) => ageOf(row, now), formatDuration),
    {
      title: 'First text',
      isNumber: true,
      sortBy: (row) => row.first_text_ms,
      cell: writeFirstText,
    },
    {
      title: 'Key',
      sortBy: ({ key_name: name, key_id: id }) => name ?? id,
      cell: ({ key_name: name, key_id: id }) =>
        id === null ? '–' : html`<a href=${linkTo('keys', id)}>${shownName(name ?? shortId(id))}</a>`,
    },
    textColumn('Model', ({ model }) => model),
    textColumn('Upstream', upstreamOf),
    textColumn('Protocol', writeProtocol),
    ...(hasNodes ? [textColumn<RunningRow>('Node', ({ node }) => node)] : []),
    ...(mayCancel ? [{ title: 'Cancel', cell: cancelButton }] : []),
  ];
}

/** The id of a request, and whose answer it gets, or who gets its answer, where it is one that others may join. */
function requestCell(row: RunningRow): VNode {
  const { request_id: id, joined } = row;
  const clients = clientsOf(row);
  return html`
    <code title=${id}>${shortId(id)}</code>
    ${clients !== null && html` <span class="note">${clients}</span>`}
    ${joined !== null && html` <span class="note">joined <code title=${joined}>${shortId(joined)}</code></span>`}
  `;
}

/** How many clients get the answer of a request that others may join; `null` for any other one. */
function clientsOf({ listening }: RunningRow): string | null {
  if (listening === null) return null;
  return listening === 0 ? 'no client, goes on' : `${formatCount(listening)} listening`;
}

/** How long ago a request arrived, in milliseconds. */
function ageOf({ created_at: createdAt }: RunningRow, now: number): number {
  return Math.max(0, now - Date.parse(createdAt));
}

function writeFirstText(row: RunningRow): string {
  const { waits_for: waitsFor, position, expected_wait_ms: expected, first_text_ms: firstText } = row;
  if (position !== null && expected !== null) return `position ${position}, ~${formatWait(expected)}`;
  if (waitsFor !== null) return waitsFor === 'slot' ? 'waits for a slot' : 'waits for its upstream';
  return orDash(firstText, formatDuration);
}

/** The upstream that was called last, or those that a request waits for. */
function upstreamOf({ upstream, waits_at: waitsAt }: RunningRow): string | null {
  return upstream ?? waitsAt?.join(', ') ?? null;
}

function writeProtocol({ protocol, mode }: RunningRow): string {
  if (protocol === null) return '–';
  return mode === null ? protocol : `${protocol}, ${mode === 'stream' ? 'streamed' : 'whole'}`;
}

function cancelButton({ request_id: id, joined }: RunningRow): VNode {
  const what =
    joined === null
      ? 'Its client gets an error, and pays for what it got so far.'
      : 'Its client gets an error, and pays nothing. The request that it has joined goes on.';
  return html`
    <${Confirm}
      label="Cancel"
      subject=${`request ${id}`}
      question="Cancel this request?"
      action=${() => callAdmin(adminPath(`in-flight/${inPath(id)}/cancel`), { method: 'POST' })}
    >
      <p>${what}</p>
      <p><code>${id}</code></p>
    <//>
  `;
}

interface WaitingProps {
  readonly rows: readonly RunningRow[];
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/**
 * The queues in front of keys and of upstreams: whose requests wait for a slot, and which upstreams requests wait for, how
 * many, and since when. Nothing if none waits.
 */
export function WaitingList({ rows, now }: WaitingProps): VNode | null {
  const atKeys = Map.groupBy(
    rows.filter(({ waits_for: what }) => what === 'slot'),
    ({ key_id: id }) => id,
  );
  const atUpstreams = Map.groupBy(
    rows.filter(({ waits_for: what }) => what === 'upstream'),
    ({ waits_at: upstreams }) => (upstreams ?? []).join(' or '),
  );
  if (atKeys.size + atUpstreams.size === 0) return null;
  return html`
    <ul class="notices">
      ${[...atKeys].map(([id, waiting]) => {
        const name = shownName(waiting[0]?.key_name ?? id ?? 'no key');
        return html`
          <li key=${id}>
            ${id === null ? name : html`<a href=${linkTo('keys', id)}>${name}</a>`} waits for a slot of the
            key or its group:${' '} ${lengthOf(waiting, now)}
          </li>
        `;
      })}
      ${[...atUpstreams].map(
        ([name, waiting]) => html`
          <li key=${`upstream ${name}`}>
            <strong>${shownName(name)}</strong> is used up to its limits:${' '} ${lengthOf(waiting, now)}
          </li>
        `,
      )}
    </ul>
  `;
}

/** How many requests wait, and for how long the first of them has been there. */
function lengthOf(waiting: readonly RunningRow[], now: number): string {
  const age = Math.max(...waiting.map((row) => ageOf(row, now)));
  return `${formatCount(waiting.length)} waiting, the first one for ${formatDuration(age)}`;
}
