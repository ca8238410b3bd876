import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { formatCount } from './format.ts';

interface Props {
  /** How many rows are drawn, and how many there are. */
  readonly shown: number;
  readonly total: number;
  /** What the rows are, as `keys`. */
  readonly plural: string;
  readonly onMore: () => void;
}

/**
 * Says that a table is drawn in part only, with a button for more of it; nothing for one that is whole from the beginning.
 * The button goes away with the last rows: without the focus on what it leaves, the next key would begin at the page's top.
 */
export function ShowMore({ shown, total, plural, onMore }: Props): VNode | null {
  const [isPressed, setIsPressed] = useState(false);
  const note = useRef<HTMLParagraphElement>(null);
  const isWhole = shown >= total;
  useEffect(() => {
    if (isWhole && document.activeElement === document.body) note.current?.focus();
  }, [isWhole]);
  if (isWhole && !isPressed) return null;
  const press = (): void => {
    setIsPressed(true);
    onMore();
  };
  return html`
    <p class="note" ref=${note} tabindex="-1">
      <span role="status">${formatCount(shown)} of ${formatCount(total)} ${plural} are shown.</span>${' '}
      ${!isWhole && html`<button type="button" class="small" onClick=${press}>Show more</button>`}
    </p>
  `;
}
