import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatCount } from '../../widgets/format.ts';
import { Outcome } from '../../widgets/outcome.ts';

/** How many requests ended in which way, most first. */
export function Endings({ endings }: { readonly endings: Readonly<Record<string, number>> }): VNode {
  const rows = Object.entries(endings).toSorted(([, a], [, b]) => b - a);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  if (rows.length === 0) return html`<p class="empty">No request has ended.</p>`;
  return html`
    <ul class="bars">
      ${rows.map(
        ([name, count]) => html`
          <li key=${name}>
            <${Outcome} name=${name} />
            <meter aria-hidden="true" min="0" max=${most} value=${count}></meter>
            <span class="number">${formatCount(count)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}
