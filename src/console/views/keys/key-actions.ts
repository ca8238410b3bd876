import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session-context.ts';
import { linkTo } from '../../route.ts';
import { Confirm } from '../../widgets/confirm.ts';
import { CreditKey } from './credit-key.ts';
import { RotateKey } from './rotate-key.ts';
import type { Issued, Key } from './types.ts';

interface Props {
  readonly of: Key;
  readonly onChanged: () => void;
  readonly onIssued: (issued: Issued) => void;
}

/** What can be done with a key, or why nothing can. */
export function KeyActions({ of: key, onChanged, onIssued }: Props): VNode {
  const { id, name, declared, revoked_at: revokedAt } = key;
  if (!useMayChange())
    return html`<p class="note">This session is read-only: who has the admin token can change this key.</p>`;
  if (revokedAt !== null)
    return html`<p class="notice">This key is revoked: requests with it are refused. Make another one.</p>`;
  const revoke = async (): Promise<void> => {
    await callAdmin(adminPath(`keys/${inPath(id)}`), { method: 'DELETE' });
    onChanged();
  };
  return html`
    ${
      declared &&
      html`<p class="notice">
        This key is declared in the config or the environment: change it there. Only its balance is changed
        here, by credits.
      </p>`
    }
    <div class="row">
      <${CreditKey} of=${key} onChanged=${onChanged} />
      ${
        !declared &&
        html`
          <a class="button" href=${linkTo('keys', id, { edit: 'yes' })}>Edit</a>
          <${RotateKey} of=${key} onIssued=${onIssued} onChanged=${onChanged} />
          <${Confirm} label="Revoke" subject=${name} question=${`Revoke ${name}?`} action=${revoke}>
            <p>
              No request begins with it from then on; those in progress go on to their end. This can't be
              undone.
            </p>
          <//>
        `
      }
    </div>
  `;
}
