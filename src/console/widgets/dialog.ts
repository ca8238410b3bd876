import { html } from 'htm/preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';
import { useAction } from '../api/use-action.ts';
import { Fault } from './fault.ts';
import { submitBy } from './field.ts';

interface Props {
  readonly title: ComponentChildren;
  /** Called when the dialog is closed, by Escape as well. */
  readonly onClose: () => void;
  /** Called instead when Escape is pressed: the dialog stays open, as it must where its content would be lost. */
  readonly onEscape?: () => void;
  readonly children?: ComponentChildren;
}

/** A dialog in front of the page, which gets the focus and gives it back where it was. */
export function Dialog({ title, onClose, onEscape, children }: Props): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const catchClosing = (event: Event): void => {
    if (onEscape === undefined) return;
    event.preventDefault();
    onEscape();
  };
  // Browsers do not ask every time whether Escape may close a dialog, but its key can be caught as long as the focus is in it.
  const catchEscape = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') catchClosing(event);
  };
  return html`
    <dialog
      ref=${dialog}
      aria-labelledby=${id}
      onClose=${onClose}
      onKeyDown=${catchEscape}
      onCancel=${catchClosing}
    >
      <h2 id=${id}>${title}</h2>
      ${children}
    </dialog>
  `;
}

interface FormProps {
  readonly title: ComponentChildren;
  readonly submitLabel: string;
  readonly children?: ComponentChildren;
  readonly onClose: () => void;
  readonly onSubmit: () => Promise<void>;
}

/** A dialog with a form: a refusal is shown in it, and what was typed stays. */
export function FormDialog({ title, submitLabel, children, onClose, onSubmit }: FormProps): VNode {
  const { run, isWaiting, error } = useAction(onSubmit);
  return html`
    <${Dialog} title=${title} onClose=${onClose} onEscape=${isWaiting ? stay : undefined}>
      <form onSubmit=${submitBy(run)}>
        ${children}
        <${Fault} text=${error} />
        <div class="actions">
          <button type="button" aria-disabled=${isWaiting} onClick=${isWaiting ? stay : onClose}>
            Go back
          </button>
          <button class="primary" aria-disabled=${isWaiting}>${submitLabel}</button>
        </div>
      </form>
    <//>
  `;
}

/** What was sent can't be taken back, and its answer may be shown only once: the dialog stays open for it. */
function stay(): void {}

interface ConfirmProps {
  /** The words of the button that asks, and of the one that does it. */
  readonly label: string;
  /** What is asked, as the title of the dialog. */
  readonly question: ComponentChildren;
  /** Names what the button is about where its label alone does not, for screen readers. */
  readonly subject: string;
  /** What it does and what it does not. */
  readonly children?: ComponentChildren;
  readonly action: () => Promise<unknown>;
}

/** A button for what can't be undone: it asks first, and shows why it failed. */
export function Confirm({ label, question, subject, children, action }: ConfirmProps): VNode {
  const [isOpen, setIsOpen] = useState(false);
  const { run, isWaiting, error, clear } = useAction(async () => {
    await action();
    setIsOpen(false);
  });
  const open = (): void => {
    clear();
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
            <button type="button" class="danger" aria-disabled=${isWaiting} onClick=${() => run()}>
              ${label}
            </button>
          </div>
        <//>
      `
    }
  `;
}
