import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { shortName } from './format.ts';

/**
 * A name, cut where it is very long: its whole is shown on hover. Letters that are written from the right turn nothing around
 * that is beside it.
 */
export function shownName(name: string): VNode {
  const short = shortName(name);
  return html`<bdi title=${short === name ? undefined : name}>${short}</bdi>`;
}
