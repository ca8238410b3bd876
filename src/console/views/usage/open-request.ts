import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { errorText, adminPath, callAdmin, readPages } from '../../api/admin-api.ts';
import { useIsHere, goTo, linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field } from '../../widgets/field.ts';

/** Opens a request by its id, or by the part of it that a log on a terminal prints. */
export function OpenRequest(): VNode {
  const [text, setText] = useState('');
  const [error, setError] = useState<string | null>(null);
  const isHere = useIsHere();
  const open = async (event: Event): Promise<void> => {
    event.preventDefault();
    setError(null);
    try {
      const id = await findRequestId(text);
      if (isHere()) goTo(linkTo('usage', id));
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  return html`
    <form class="row" role="search" aria-label="Requests" onSubmit=${open}>
      <${Field} label="Request id" value=${text} onInput=${setText} placeholder="req_…" autocomplete="off" />
      <button>Open</button>
    </form>
    <${Fault} text=${error} />
  `;
}

/** In how many of the newest records a part of an id is searched, as `textgate show` does: pages of the gateway's most. */
const pageSize = 200;
const maxPages = 5;
const maxSearched = pageSize * maxPages;

const wholeId = /^req_[0-9a-f]{32}$/;
const partOfId = /^…?(?:req_)?([0-9a-f]{4,32})…?$/;

interface Identified {
  readonly request_id: string;
}

/** The id of the only request that has this id, or one that begins or ends like this. Throws what to do otherwise. */
async function findRequestId(text: string): Promise<string> {
  const given = text.trim();
  if (wholeId.test(given)) return given;
  const [, part] = partOfId.exec(given) ?? [];
  if (part === undefined)
    throw new Error('Enter a request id: req_ and 32 digits, or 4 digits or more of one.');
  const lists = await Promise.all([
    callAdmin<{ readonly data: readonly Identified[] }>(adminPath('in-flight')).then(({ data }) => data),
    readPages<Identified>('records', { limit: pageSize }, { cursor: 'before', maxPages }).then(
      ({ rows }) => rows,
    ),
  ]);
  const ids = new Set(lists.flat().map(({ request_id: id }) => id));
  const found = [...ids].filter((id) => id.startsWith(`req_${part}`) || id.endsWith(part));
  const [only, another] = found;
  if (only === undefined)
    throw new Error(
      `No request in progress or among the newest ${maxSearched} has an id with ${part} at its beginning or end. Enter all of it.`,
    );
  if (another !== undefined)
    throw new Error(`Several requests have ${part} in their ids. Enter more digits: ${found.join(', ')}`);
  return only;
}
