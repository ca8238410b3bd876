import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { errorText } from '../../api/error-text.ts';
import { useMayChange } from '../../api/session-context.ts';
import { linkTo } from '../../route.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { emptyValues } from './form-fields.ts';
import type { FormValues } from './form-fields.ts';
import { newKeyBody } from './form-values.ts';
import { KeyForm } from './key-form.ts';
import type { Issued, Key } from './types.ts';

/** The making of a key. */
export function MakeKey({ onIssued }: { readonly onIssued: (issued: Issued) => void }): VNode {
  const mayChange = useMayChange();
  const [values, setValues] = useState<FormValues>(emptyValues);
  const [error, setError] = useState<string | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const submit = async (): Promise<void> => {
    setError(null);
    setIsWaiting(true);
    try {
      const { id, name, key } = await callAdmin<Key & { readonly key: string }>(adminPath('keys'), {
        method: 'POST',
        body: newKeyBody(values),
      });
      setValues(emptyValues);
      onIssued({ keyId: id, keyName: name, secret: key });
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsWaiting(false);
    }
  };
  return html`
    <p><a href=${linkTo('keys')}>← All keys</a></p>
    <section>
      <${PlaceHeading}>Make a key<//>
      ${
        mayChange
          ? html`<${KeyForm}
              values=${values}
              onValues=${setValues}
              isNew=${true}
              error=${error}
              isWaiting=${isWaiting}
              submitLabel="Make the key"
              cancelLink=${linkTo('keys')}
              onSubmit=${submit}
            />`
          : html`<p class="empty">
              This session can change nothing. Log in with the admin token to make a key.
            </p>`
      }
    </section>
  `;
}
