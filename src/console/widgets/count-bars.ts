import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { formatCount } from './format.ts';

interface Props {
  readonly counts: Readonly<Record<string, number>>;
  readonly label: (name: string) => ComponentChildren;
  /** The colour of a bar, beside its label; without it all are of one that says nothing. */
  readonly moodOf?: (name: string) => string;
  /** Said where nothing was counted. */
  readonly empty: string;
}

/** Counts by name with their bars, most first. */
export function CountBars({ counts, label, moodOf = () => 'plain', empty }: Props): VNode {
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
            <${Bar} part=${count / most} mood=${moodOf(name)} />
            <span class="number">${formatCount(count)}</span>
          </li>
        `,
      )}
    </ul>
  `;
}

interface BarProps {
  /** From 0 to 1. */
  readonly part: number;
  readonly mood?: string;
}

/** A part of a whole, beside its number. */
export function Bar({ part, mood = 'plain' }: BarProps): VNode {
  return html`
    <svg class=${`bar ${mood}`} aria-hidden="true" preserveAspectRatio="none">
      <rect width=${`${part * 100}%`} height="100%" />
    </svg>
  `;
}
