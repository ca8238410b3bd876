import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin, inPath } from '../../api/admin-api.ts';
import { Field } from '../../widgets/field.ts';
import { formatAmount } from '../../widgets/format.ts';
import { FormDialog } from './form-dialog.ts';
import type { Key } from './types.ts';

interface Props {
  readonly of: Key;
  readonly onChanged: () => void;
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
export function CreditKey({ of: { id, name }, onChanged }: Props): VNode {
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
          title=${`Credit ${name}`}
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
