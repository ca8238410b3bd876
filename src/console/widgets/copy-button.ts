import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';

interface Props {
  readonly text: string;
  /** What is copied, as `the key`. */
  readonly subject: string;
}

/** Copies a text. Where a browser forbids that, as on pages without TLS, it says so: the text can be selected. */
export function CopyButton({ text, subject }: Props): VNode {
  const [said, setSaid] = useState('');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied.');
    } catch {
      setSaid('The browser does not let this page copy: select the text instead.');
    }
  };
  return html`
    <button type="button" class="small" onClick=${copy}>Copy<span class="unseen"> ${subject}</span></button>
    <span class="note" role="status">${said}</span>
  `;
}
