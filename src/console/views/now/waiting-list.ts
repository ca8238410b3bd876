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

/** The lines in front of keys: whose requests wait for a slot, how many, and since when. Nothing if none waits. */
export function WaitingList({ rows, now }: Props): VNode | null {
  const waiting = rows.filter(({ waits_for: what }) => what !== null);
  const lines = Map.groupBy(waiting, ({ key_id: id }) => id);
  if (lines.size === 0) return null;
  return html`
    <ul class="notices">
      ${[...lines].map(([id, [first, ...others]]) => {
        if (first === undefined) return null;
        const age = formatDuration(ageOf(first, now));
        const name = first.key_name ?? id ?? 'no key';
        return html`
          <li key=${id}>
            ${id === null ? name : html`<a href=${linkTo('keys', id)}>${name}</a>`} waits for a slot of the
            key or its group:${' '} ${formatCount(others.length + 1)} waiting, the first one for ${age}
          </li>
        `;
      })}
    </ul>
  `;
}
