import { html } from 'htm/preact';
import type { VNode } from 'preact';

const moods: Readonly<Record<string, string>> = { ok: 'good', unknown: 'plain', failing: 'bad' };

/** The state of an upstream, in words and in a colour. */
export function UpstreamState({ state }: { readonly state: string }): VNode {
  return html`<span class=${`badge ${moods[state] ?? 'warning'}`}>
    ${state === 'unknown' ? 'not asked yet' : state}
  </span>`;
}
