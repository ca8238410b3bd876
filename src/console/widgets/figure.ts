import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';

interface Props {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  /** How it is: a colour beside the words, never instead of them. */
  readonly mood?: 'good' | 'warning' | 'bad';
  /** Whether the value is a text, such as an address or a time, which would fill several lines at the size of a number. */
  readonly isText?: boolean;
}

/** One figure with its name; several stand in a `Figures`. */
export function Figure({ label, value, note, mood, isText = false }: Props): VNode {
  return html`
    <div class=${`figure ${mood ?? ''} ${isText ? 'words' : ''}`}>
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
