import { html } from 'htm/preact';
import type { VNode } from 'preact';

/** In work. */
export function Try(): VNode {
  return html`<p>In work.</p>`;
}
