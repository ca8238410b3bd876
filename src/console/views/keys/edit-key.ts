import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { errorText } from '../../api/error-text.ts';
import { useIsHere } from '../../api/use-is-here.ts';
import { goTo, linkTo } from '../../route.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { changesBody, valuesOf } from './form-values.ts';
import { KeyForm } from './key-form.ts';
import type { Key } from './types.ts';

interface Props {
  /** The key as it was when the form was opened. */
  readonly of: Key;
  readonly onChanged: () => void;
}

/** The change of a key's settings: only those that were changed in the form are sent. */
export function EditKey({ of, onChanged }: Props): VNode {
  const before = useMemo(() => valuesOf(of), []);
  const [values, setValues] = useState(before);
  const [error, setError] = useState<string | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const place = linkTo('keys', of.id);
  const isHere = useIsHere();
  const submit = async (): Promise<void> => {
    setError(null);
    setIsWaiting(true);
    try {
      const path = adminPath(`keys/${inPath(of.id)}`);
      await callAdmin<Key>(path, { method: 'PATCH', body: changesBody(before, values) });
      onChanged();
      if (isHere()) goTo(place);
    } catch (failure) {
      setError(errorText(failure));
      setIsWaiting(false);
    }
  };
  return html`
    <section>
      <${PlaceHeading}>Edit ${of.name}<//>
      <${KeyForm}
        values=${values}
        onValues=${setValues}
        isNew=${false}
        error=${error}
        isWaiting=${isWaiting}
        submitLabel="Save the changes"
        cancelLink=${place}
        onSubmit=${submit}
      />
    </section>
  `;
}
