import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';

interface Props {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  /** How it is: a colour beside the words, never instead of them. */
  readonly mood?: 'good' | 'warning' | 'bad';
}

/** One figure with its name; several stand in a `Figures`. */
export function Figure({ label, value, note, mood }: Props): VNode {
  return html`
    <div class=${`figure ${mood ?? ''}`}>
      <dt>${label}</dt>
      <dd>
        <strong>${value}</strong>
        ${note !== undefined && html`<span class="note">${note}</span>`}
      </dd>
    </div>
  `;
}

/** Some figures side by side. */
export function Figures({ children }: { readonly children?: ComponentChildren }): VNode {
  return html`<dl class="figures">${children}</dl>`;
}
