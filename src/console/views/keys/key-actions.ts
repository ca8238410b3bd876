import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session.ts';
import { linkTo } from '../../route.ts';
import { Confirm, FormDialog } from '../../widgets/dialog.ts';
import { Field } from '../../widgets/field.ts';
import { formatAmount, shortName } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
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
          <${Confirm}
            label="Revoke"
            subject=${shortName(name)}
            question=${html`Revoke ${shownName(name)}?`}
            action=${revoke}
          >
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

interface Booking {
  readonly booked: boolean;
  readonly balance: string | null;
}

const referenceBytes = 8;

/** A reference that no other payment has. */
function makeReference(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(referenceBytes));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** Adds to the balance of a key. The reference stays when a try fails: a payment that was booked is not booked again. */
function CreditKey({ of: { id, name }, onChanged }: Omit<Props, 'onIssued'>): VNode {
  const [isOpen, setIsOpen] = useState(false);
  const [amount, setAmount] = useState('');
  const [reference, setReference] = useState('');
  const [said, setSaid] = useState('');
  const open = (): void => {
    if (reference === '') setReference(makeReference());
    setSaid('');
    setIsOpen(true);
  };
  const credit = async (): Promise<void> => {
    const path = adminPath(`keys/${inPath(id)}/credits`);
    const body = { amount: amount.trim(), reference: reference.trim() };
    const { booked, balance } = await callAdmin<Booking>(path, { method: 'POST', body });
    const now = balance === null ? '' : ` The balance is ${formatAmount(balance)}.`;
    setSaid(
      booked
        ? `${formatAmount(body.amount)} booked.${now}`
        : `The reference ${body.reference} was booked before: nothing was added.${now}`,
    );
    setAmount('');
    setReference('');
    setIsOpen(false);
    onChanged();
  };
  return html`
    <button type="button" class="primary" onClick=${open}>Credit</button>
    <span class="note" role="status">${said}</span>
    ${
      isOpen &&
      html`
        <${FormDialog}
          title=${html`Credit ${shownName(name)}`}
          submitLabel="Book the payment"
          onClose=${() => setIsOpen(false)}
          onSubmit=${credit}
        >
          <${Field}
            label="Amount in USD"
            value=${amount}
            onInput=${setAmount}
            required=${true}
            autocomplete="off"
            hint="Such as 5.00. No command takes it away again."
          />
          <${Field}
            label="Reference"
            value=${reference}
            onInput=${setReference}
            required=${true}
            autocomplete="off"
            hint="Each reference is booked once, such as the number of an invoice."
          />
        <//>
      `
    }
  `;
}

/** Gives a key a new secret. */
function RotateKey({ of: { id, name }, onIssued, onChanged }: Props): VNode {
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
          title=${html`Rotate the secret of ${shownName(name)}`}
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
