import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { formatCount } from './format.ts';

interface Props {
  readonly counts: Readonly<Record<string, number>>;
  readonly label: (name: string) => ComponentChildren;
  /** Said where nothing was counted. */
  readonly empty: string;
}

/** Counts by name with their bars, most first. */
export function CountBars({ counts, label, empty }: Props): VNode {
  const rows = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .toSorted(([, a], [, b]) => b - a);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`
    <ul class="bars">
      ${rows.map(
        ([name, count]) => html`
          <li key=${name}>
            <span>${label(name)}</span>
            <meter aria-hidden="true" min="0" max=${most} value=${count}></meter>
            <span class="number">${formatCount(count)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}
