import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { errorText } from '../../api/error-text.ts';
import { useIsHere } from '../../api/use-is-here.ts';
import { goTo, linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field } from '../../widgets/field.ts';
import { findRequestId } from './find-request.ts';

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
      <button>Open the request</button>
    </form>
    <${Fault} text=${error} />
  `;
}
