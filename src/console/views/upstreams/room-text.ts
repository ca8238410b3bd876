import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatCount, formatDuration, formatWait } from '../../widgets/format.ts';
import { limitsOf } from './limit-texts.ts';
import type { Room } from './limit-texts.ts';

/** How an upstream's limits are used, what is left of them, and who waits. */
export function RoomText({ room }: { readonly room: Room }): VNode {
  const { paused_ms: paused, waiting, expected_wait_ms: expected } = room;
  return html`
    <ul>
      ${limitsOf(room).map(([name, text]) => html`<li key=${name}>${text}</li>`)}
    </ul>
    ${paused > 0 && html`<p>It asked for a pause, which ends in ${formatDuration(paused)}.</p>`}
    ${
      waiting > 0 &&
      html`<p>
        ${formatCount(waiting)} waiting; the next one that comes has to expect about ${formatWait(expected)}.
      </p>`
    }
  `;
}
