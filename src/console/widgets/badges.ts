import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { asWords } from './format.ts';

/** Outcomes that are as they should be, or the client's own doing; all others are faults. */
const outcomeMoods: Readonly<Record<string, string>> = {
  completed: 'good',
  incomplete: 'good',
  joined: 'good',
  replayed: 'good',
  refused: 'plain',
  client_closed: 'plain',
  cancelled: 'plain',
  drained: 'warning',
};

/** The colour of an outcome. */
export function outcomeMood(name: string): string {
  return outcomeMoods[name] ?? 'bad';
}

/** How a request ended, in words and in a colour. */
export function Outcome({ name }: { readonly name: string | null }): VNode {
  if (name === null) return html`<span class="badge plain">in progress</span>`;
  return html`<span class=${`badge ${outcomeMood(name)}`}>${asWords(name)}</span>`;
}

const stateMoods: Readonly<Record<string, string>> = { ok: 'good', unknown: 'plain', failing: 'bad' };

/** The state of an upstream, in words and in a colour. */
export function UpstreamState({ state }: { readonly state: string }): VNode {
  return html`<span class=${`badge ${stateMoods[state] ?? 'warning'}`}>
    ${state === 'unknown' ? 'not asked yet' : state}
  </span>`;
}
