import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Status } from '../../api/use-status.ts';
import { linkTo } from '../../route.ts';
import { UpstreamState } from '../../widgets/upstream-state.ts';
import { formatCount } from '../../widgets/format.ts';

/** How each upstream is, and why. */
export function UpstreamList({ upstreams }: { readonly upstreams: Status['upstreams'] }): VNode {
  const rows = Object.entries(upstreams);
  if (rows.length === 0)
    return html`<p class="empty">There is no upstream. Add one to <code>upstreams</code> in the config.</p>`;
  return html`
    <ul class="cards">
      ${rows.map(
        ([name, { state, cause, running, waiting }]) => html`
          <li key=${name} class=${cause === undefined ? '' : 'broad'}>
            <p>
              <a href=${linkTo('upstreams', name)}><strong>${name}</strong></a
              >${' '}
              <${UpstreamState} state=${state} />
            </p>
            <p class="note">
              ${formatCount(running)} in progress${waiting > 0 && `, ${formatCount(waiting)} waiting`}
            </p>
            ${cause !== undefined && html`<p class="cause">${cause}</p>`}
          </li>
        `,
      )}
    </ul>
  `;
}
