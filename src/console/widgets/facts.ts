import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';

/** A name and what is known under it; nothing is shown of one that is `null`. */
export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts under their names, one a line. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }): VNode {
  return html`
    <dl class="facts">
      ${facts.map(
        ([name, value]) =>
          value !== null &&
          html`
            <div key=${name}>
              <dt>${name}</dt>
              <dd>${value}</dd>
            </div>
          `,
      )}
    </dl>
  `;
}

interface FigureProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  /** How it is: a colour beside the words, never instead of them. */
  readonly mood?: 'good' | 'warning' | 'bad';
  /** Whether the value is a text, such as an address or a time, which would fill several lines at the size of a number. */
  readonly isText?: boolean;
}

/** One figure with its name; several stand in a `Figures`. */
export function Figure({ label, value, note, mood, isText = false }: FigureProps): VNode {
  return html`
    <div class=${`figure ${isText ? 'words' : ''}`}>
      <dt>${label}</dt>
      <dd>
        <strong class=${mood}>${value}</strong>
        ${note !== undefined && html`<span class="note">${note}</span>`}
      </dd>
    </div>
  `;
}

/** Some figures side by side. */
export function Figures({ children }: { readonly children?: ComponentChildren }): VNode {
  return html`<dl class="figures">${children}</dl>`;
}
