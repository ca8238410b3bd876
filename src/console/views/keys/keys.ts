import { html } from 'htm/preact';
import { useState, useEffect } from 'preact/hooks';
import type { VNode } from 'preact';
import { goTo, linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { CopyButton } from '../../widgets/copy-button.ts';
import { Dialog } from '../../widgets/dialog.ts';
import { shownName } from '../../widgets/name.ts';
import { KeyList } from './key-list.ts';
import { KeyPage } from './key-page.ts';
import { MakeKey } from './edit-key.ts';
import type { Issued } from './types.ts';

/** The place where a key is made; ids of keys begin with `key_`. */
const placeOfNew = 'new';

/** The keys: all of them, one of them, or the making of one. */
export function Keys({ route: { id, query } }: { readonly route: Route }): VNode {
  const [issued, setIssued] = useState<Issued | null>(null);
  const closeSecret = (): void => {
    setIssued(null);
    if (issued !== null) goTo(linkTo('keys', issued.keyId));
  };
  return html`
    ${id === null && html`<${KeyList} query=${query} />`}
    ${id === placeOfNew && html`<${MakeKey} onIssued=${setIssued} />`}
    ${
      id !== null &&
      id !== placeOfNew &&
      html`<${KeyPage} key=${id} id=${id} isEdited=${query.get('edit') !== null} onIssued=${setIssued} />`
    }
    ${issued !== null && html`<${SecretDialog} issued=${issued} onClose=${closeSecret} />`}
  `;
}

interface Props {
  readonly issued: Issued;
  readonly onClose: () => void;
}

/** Shows a secret once. One press of Escape does not close it: the secret would be lost by a slip. */
function SecretDialog({ issued: { keyName, secret }, onClose }: Props): VNode {
  const [isAsked, setIsAsked] = useState(false);
  const onEscape = (): void => (isAsked ? onClose() : setIsAsked(true));
  // A reload would lose it, too: browsers ask first.
  useEffect(() => {
    const ask = (event: Event): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, []);
  return html`
    <${Dialog} title=${html`The secret of ${shownName(keyName)}`} onClose=${onClose} onEscape=${onEscape}>
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
