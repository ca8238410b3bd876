import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { CopyButton } from '../../widgets/copy-button.ts';
import { Dialog } from '../../widgets/dialog.ts';
import type { Issued } from './types.ts';

interface Props {
  readonly issued: Issued;
  readonly onClose: () => void;
}

/** Shows a secret once. One press of Escape does not close it: the secret would be lost by a slip. */
export function SecretDialog({ issued: { keyName, secret }, onClose }: Props): VNode {
  const [isAsked, setIsAsked] = useState(false);
  const onEscape = (): void => (isAsked ? onClose() : setIsAsked(true));
  // A reload would lose it, too: browsers ask first.
  useEffect(() => {
    const ask = (event: Event): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, []);
  return html`
    <${Dialog} title=${`The secret of ${keyName}`} onClose=${onClose} onEscape=${onEscape}>
      <p>Copy it now: it is shown only here and only once. The gateway keeps no more than its hash.</p>
      <pre><code>${secret}</code></pre>
      <p><${CopyButton} text=${secret} subject="the secret" /></p>
      <p>
        Clients send it as their API key, in the header ${' '}<code>Authorization: Bearer sk-tg-…</code>, to
        the public address of the gateway.
      </p>
      <p role="status" class=${isAsked ? 'notice' : ''}>
        ${isAsked && 'Did you copy the secret? Press Escape again to close.'}
      </p>
      <div class="actions">
        <button type="button" class="primary" onClick=${onClose}>I have copied it</button>
      </div>
    <//>
  `;
}
