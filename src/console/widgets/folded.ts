import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';

interface Props {
  readonly summary: ComponentChildren;
  /** Writes what is folded. */
  readonly children: () => ComponentChildren;
}

/** What is shown at a wish, and drawn only then: a table of many rows would delay what is above it. */
export function Folded({ summary, children }: Props): VNode {
  const [isOpen, setIsOpen] = useState(false);
  return html`
    <details onToggle=${(event: Event) => setIsOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>${summary}</summary>
      ${isOpen && children()}
    </details>
  `;
}
