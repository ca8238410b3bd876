import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';
import { errorText } from '../api/error-text.ts';
import { Dialog } from './dialog.ts';
import { Fault } from './fault.ts';

interface Props {
  /** The words of the button that asks, and of the one that does it. */
  readonly label: string;
  /** What is asked, as the title of the dialog. */
  readonly question: string;
  /** Names what the button is about where its label alone does not, for screen readers. */
  readonly subject: string;
  /** What it does and what it does not. */
  readonly children?: ComponentChildren;
  readonly action: () => Promise<unknown>;
}

/** A button for what can't be undone: it asks first, and shows why it failed. */
export function Confirm({ label, question, subject, children, action }: Props): VNode {
  const [isOpen, setIsOpen] = useState(false);
  const [isWaiting, setIsWaiting] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const run = async (): Promise<void> => {
    if (isWaiting) return;
    setIsWaiting(true);
    setError(null);
    try {
      await action();
      setIsOpen(false);
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsWaiting(false);
    }
  };
  const open = (): void => {
    setError(null);
    setIsOpen(true);
  };
  return html`
    <button type="button" class="small" onClick=${open}>
      ${label}<span class="unseen"> ${subject}</span>
    </button>
    ${
      isOpen &&
      html`
        <${Dialog} title=${question} onClose=${() => setIsOpen(false)}>
          ${children}
          <${Fault} text=${error} />
          <div class="actions">
            <button type="button" onClick=${() => setIsOpen(false)}>Go back</button>
            <button type="button" class="danger" aria-disabled=${isWaiting} onClick=${run}>${label}</button>
          </div>
        <//>
      `
    }
  `;
}
