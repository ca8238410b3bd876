import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { Field } from '../../widgets/field.ts';
import { FormDialog } from './form-dialog.ts';
import type { Issued, Key } from './types.ts';

interface Props {
  readonly of: Key;
  readonly onIssued: (issued: Issued) => void;
  readonly onChanged: () => void;
}

/** Gives a key a new secret. */
export function RotateKey({ of: { id, name }, onIssued, onChanged }: Props): VNode {
  const [isOpen, setIsOpen] = useState(false);
  const [grace, setGrace] = useState('1h');
  const rotate = async (): Promise<void> => {
    const path = adminPath(`keys/${inPath(id)}/rotate`);
    const body = grace.trim() === '' ? {} : { grace: grace.trim() };
    const { key: secret } = await callAdmin<{ readonly key: string }>(path, { method: 'POST', body });
    setIsOpen(false);
    onChanged();
    onIssued({ keyId: id, keyName: name, secret });
  };
  return html`
    <button type="button" onClick=${() => setIsOpen(true)}>Rotate</button>
    ${
      isOpen &&
      html`
        <${FormDialog}
          title=${`Rotate the secret of ${name}`}
          submitLabel="Make a new secret"
          onClose=${() => setIsOpen(false)}
          onSubmit=${rotate}
        >
          <${Field}
            label="How long the old secret stays valid"
            value=${grace}
            onInput=${setGrace}
            autocomplete="off"
            hint="Such as 30m, 1h or 2d. Empty: the old secret is refused at once."
          />
        <//>
      `
    }
  `;
}
