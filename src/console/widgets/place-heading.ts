import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';
import { isTyping } from './is-typing.ts';

interface Props {
  /** What changes where a link leads on within the place, as from page to page. */
  readonly place?: string | null;
  readonly children?: ComponentChildren;
}

/**
 * The heading of a place inside a view. It gets the focus: the link that led here may be gone. Where a link leads on within
 * the place, it gets the focus if that link had it and is gone, but never takes it from a field.
 */
export function PlaceHeading({ place = null, children }: Props): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const isNew = useRef(true);
  useEffect(() => {
    const isWanted = isNew.current && !isTyping();
    if (isWanted || document.activeElement === document.body) heading.current?.focus();
    isNew.current = false;
  }, [place]);
  return html`<h2 ref=${heading} tabindex="-1">${children}</h2>`;
}
