import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { asWords, formatCount } from '../../widgets/format.ts';

interface Props {
  readonly counts: Readonly<Record<string, number>>;
  /** Said where nothing was counted. */
  readonly empty: string;
}

/** Counts by name, most first. */
export function Counts({ counts, empty }: Props): VNode {
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
            <span>${asWords(name)}</span>
            <meter aria-hidden="true" min="0" max=${most} value=${count}></meter>
            <span class="number">${formatCount(count)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}
