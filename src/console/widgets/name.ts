import { html } from 'htm/preact';
import type { ComponentChildren } from 'preact';
import { shortName } from './format.ts';

/** A name, cut where it is very long: its whole is shown on hover. */
export function shownName(name: string): ComponentChildren {
  const short = shortName(name);
  return short === name ? name : html`<span title=${name}>${short}</span>`;
}
