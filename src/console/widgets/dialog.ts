import { html } from 'htm/preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';

interface Props {
  readonly title: string;
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
  // Browsers do not ask every time whether Escape may close a dialog, but its key can always be caught.
  const catchEscape = (event: KeyboardEvent): void => {
    if (onEscape === undefined || event.key !== 'Escape') return;
    event.preventDefault();
    onEscape();
  };
  // Without the focus in the dialog, its key is not caught there.
  const catchCancel = (event: Event): void => {
    if (onEscape === undefined) return;
    event.preventDefault();
    onEscape();
  };
  return html`
    <dialog
      ref=${dialog}
      aria-labelledby=${id}
      onClose=${onClose}
      onKeyDown=${catchEscape}
      onCancel=${catchCancel}
    >
      <h2 id=${id}>${title}</h2>
      ${children}
    </dialog>
  `;
}
