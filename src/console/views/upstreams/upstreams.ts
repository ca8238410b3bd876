import { html } from 'htm/preact';
import type { VNode } from 'preact';

/** In work. */
export function Upstreams(): VNode {
  return html`<p>In work.</p>`;
}
