import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';

/** The heading of a place inside a view. It gets the focus: the link that led here may be gone. */
export function PlaceHeading({ children }: { readonly children?: ComponentChildren }): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return html`<h2 ref=${heading} tabindex="-1">${children}</h2>`;
}
