import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, inPath } from '../../api/admin-api.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { goTo, linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { shortId, shortName } from '../../widgets/format.ts';
import { stateOf } from '../keys/types.ts';
import type { Key, Page } from '../keys/types.ts';

interface Props {
  readonly keyId: string | null;
  readonly query: URLSearchParams;
}

/** How many of the newest keys are offered by their names. */
const maxKeys = 100;

/** Chooses the key that requests are sent as: the playground's own, one of the newest, or any by its id. */
export function KeyChoice({ keyId, query }: Props): VNode {
  const { answer, error } = useAnswer<Page<Key>>(adminPath('keys', { limit: maxKeys }));
  const listed = useMemo(() => (answer?.data ?? []).filter((key) => stateOf(key) === 'active'), [answer]);
  const isListed = keyId === null || listed.some(({ id }) => id === keyId);
  const path = answer === null || isListed ? null : adminPath(`keys/${inPath(keyId)}`);
  const { answer: other } = useAnswer<Key>(path);
  const choose = (id: string): void => goTo(linkTo('try', null, { ...Object.fromEntries(query), key: id }));
  if (answer === null) return html`<${Fault} text=${error} />`;
  const chosen = isListed ? [] : [[keyId, nameOf(other ?? { id: keyId, name: null })] as const];
  const options = [
    ['', 'The playground’s own key'] as const,
    ...chosen,
    ...listed.map((key) => [key.id, nameOf(key)] as const),
  ];
  return html`
    <${Fault} text=${error} />
    <p class="note">
      ${
        keyId === null
          ? 'The playground’s own key is made with the first request, and may spend $1.00 a day; change it in Keys.'
          : 'The request is sent as this key: it takes one of its slots, counts in its limits, and is recorded and charged like its other requests.'
      }
    </p>
    <div class="row">
      <${Select} label="Key" value=${keyId ?? ''} options=${options} onChange=${choose} />
      <${OtherKey} onChoose=${choose} />
    </div>
  `;
}

/** A field for the id of a key that is not offered. */
function OtherKey({ onChoose }: { readonly onChoose: (id: string) => void }): VNode {
  const [id, setId] = useState('');
  const [error, setError] = useState<string | null>(null);
  const submit = (): void => {
    const given = id.trim();
    setId('');
    // What is chosen becomes part of the address, where no secret may be.
    if (!given.startsWith('key_')) {
      setError("This is not a key's id, which begins with key_. A key's secret is not needed here.");
      return;
    }
    setError(null);
    onChoose(given);
  };
  return html`
    <form class="row" onSubmit=${submitBy(submit)}>
      <${Field}
        label="Another key, by its id"
        value=${id}
        onInput=${setId}
        placeholder="key_…"
        autocomplete="off"
        required
      />
      <button>Use this key</button>
      <${Fault} text=${error} />
    </form>
  `;
}

/** Names may be given twice, so the id is beside them. */
function nameOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return name === null ? id : `${shortName(name)} (${shortId(id)})`;
}
