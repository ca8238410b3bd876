import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { formatTime } from '../../widgets/format.ts';
import type { Change } from './use-changes.ts';

/** The changes that were seen, newest first, each read aloud when it appears. */
export function ChangeLog({ changes }: { readonly changes: readonly Change[] }): VNode {
  return html`
    <section>
      <h2 id="changes">Since you opened this page</h2>
      <div role="log" aria-labelledby="changes">
        <ul class="log">
          ${changes.map(
            ({ number, atMs, upstream, what, mood, cause }) => html`
              <li key=${number}>
                <time class="note">${formatTime(new Date(atMs).toISOString())}</time>${' '}
                <a href=${linkTo('upstreams', upstream)}>${upstream}</a>${' '}
                <span class=${mood}>${what}</span>
                ${cause !== null && html`<p class="note">${cause}</p>`}
              </li>
            `,
          )}
        </ul>
      </div>
      ${changes.length === 0 && html`<p class="empty">No upstream has changed its state.</p>`}
    </section>
  `;
}
