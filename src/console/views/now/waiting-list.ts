import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { formatCount, formatDuration } from '../../widgets/format.ts';
import { ageOf } from './running-table.ts';
import type { RunningRow } from './running-table.ts';

interface Props {
  readonly rows: readonly RunningRow[];
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/**
 * The queues in front of keys and of upstreams: whose requests wait for a slot, and which upstreams requests wait for, how many,
 * and since when. Nothing if none waits.
 */
export function WaitingList({ rows, now }: Props): VNode | null {
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
        const name = waiting[0]?.key_name ?? id ?? 'no key';
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
            <strong>${name}</strong> is used up to its limits:${' '} ${lengthOf(waiting, now)}
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
