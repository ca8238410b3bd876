import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { goTo, linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { KeyList } from './key-list.ts';
import { KeyPage } from './key-page.ts';
import { MakeKey } from './make-key.ts';
import { SecretDialog } from './secret-dialog.ts';
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
