import { html } from 'htm/preact';
import type { VNode } from 'preact';

/** In work. */
export function Keys(): VNode {
  return html`<p>In work.</p>`;
}
