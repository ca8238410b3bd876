import { html } from 'htm/preact';
import { useMemo, useRef } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session.ts';
import { goTo, linkTo, useIsHere } from '../../route.ts';
import { shownName } from '../../widgets/name.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { changedLabels, changesBody, emptyValues, valuesOf } from './key-fields.ts';
import type { FormValues } from './key-fields.ts';
import { KeyForm } from './key-form.ts';
import type { Issued, Key } from './types.ts';

interface Props {
  /** The key as it was when the form was opened. */
  readonly of: Key;
  readonly onChanged: () => void;
}

/**
 * The change of a key's settings: only those that were changed in the form are sent. Who changes a key that another person has
 * changed since the form was opened is told so first.
 */
export function EditKey({ of, onChanged }: Props): VNode {
  const before = useMemo(() => valuesOf(of), []);
  const seen = useRef(before);
  const place = linkTo('keys', of.id);
  const isHere = useIsHere();
  const save = async (values: FormValues): Promise<void> => {
    const path = adminPath(`keys/${inPath(of.id)}`);
    const found = valuesOf(await callAdmin<Key>(path));
    const changed = changedLabels(seen.current, found);
    seen.current = found;
    if (changed.length > 0)
      throw new Error(
        `Another person has changed this key meanwhile: ${changed.join(', ')}. Nothing is saved yet; save again to make your changes, too.`,
      );
    await callAdmin<Key>(path, { method: 'PATCH', body: changesBody(before, values) });
    onChanged();
    if (isHere()) goTo(place);
  };
  return html`
    <section>
      <${PlaceHeading}>Edit ${shownName(of.name)}<//>
      <${KeyForm}
        before=${before}
        isNew=${false}
        submitLabel="Save the changes"
        cancelLink=${place}
        onSubmit=${save}
      />
    </section>
  `;
}

/** The making of a key. */
export function MakeKey({ onIssued }: { readonly onIssued: (issued: Issued) => void }): VNode {
  const mayChange = useMayChange();
  const make = async (values: FormValues): Promise<void> => {
    const { id, name, key } = await callAdmin<Key & { readonly key: string }>(adminPath('keys'), {
      method: 'POST',
      body: changesBody(emptyValues, values),
    });
    onIssued({ keyId: id, keyName: name, secret: key });
  };
  return html`
    <p><a href=${linkTo('keys')}>← All keys</a></p>
    <section>
      <${PlaceHeading}>Create key<//>
      ${
        mayChange
          ? html`<${KeyForm}
              before=${emptyValues}
              isNew=${true}
              submitLabel="Make the key"
              cancelLink=${linkTo('keys')}
              onSubmit=${make}
            />`
          : html`<p class="empty">
              This session can change nothing. Log in with the admin token to make a key.
            </p>`
      }
    </section>
  `;
}
