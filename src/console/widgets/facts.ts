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
