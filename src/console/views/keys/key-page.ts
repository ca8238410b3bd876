import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { adminPath, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session-context.ts';
import { useAnswer } from '../../api/use-answer.ts';
import { linkTo } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { EditKey } from './edit-key.ts';
import { KeyActions } from './key-actions.ts';
import { KeyFacts, KeyFigures } from './key-facts.ts';
import { KeyState } from './key-state.ts';
import { Statement } from './statement.ts';
import type { Issued, Key } from './types.ts';

interface Props {
  readonly id: string;
  /** Whether its settings are being changed. */
  readonly isEdited: boolean;
  readonly onIssued: (issued: Issued) => void;
}

/** One key: what it has and did, its settings, and what can be done with it. */
export function KeyPage({ id, isEdited, onIssued }: Props): VNode {
  const { answer: key, error, reload } = useAnswer<Key>(adminPath(`keys/${inPath(id)}`));
  const mayChange = useMayChange();
  const isChangeable = key !== null && mayChange && !key.declared && key.revoked_at === null;
  return html`
    <p><a href=${linkTo('keys')}>← All keys</a></p>
    <${Fault} text=${error} />
    ${
      key !== null &&
      (isEdited && isChangeable
        ? html`<${EditKey} of=${key} onChanged=${reload} />`
        : html`
            <${PlaceHeading}>${key.name} <${KeyState} of=${key} /><//>
            <p><code>${key.id}</code></p>
            <${KeyFigures} of=${key} />
            <${KeyActions} of=${key} onChanged=${reload} onIssued=${onIssued} />
            <p class="row">
              <a href=${linkTo('usage', null, { key: id })}>Its usage</a>
              <a href=${linkTo('usage', 'records', { key: id })}>Its requests</a>
              <a href=${linkTo('try', null, { key: id })}>Try a model with it</a>
            </p>
            <${KeyFacts} of=${key} />
            <${Statement} keyId=${id} />
          `)
    }
  `;
}
