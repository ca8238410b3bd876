import { html } from 'htm/preact';
import type { VNode } from 'preact';

/** Why something failed, read aloud when it appears; nothing without a text. */
export function Fault({ text }: { readonly text: string | null }): VNode {
  return html`<p class="fault" role="alert" hidden=${text === null}>${text}</p>`;
}
