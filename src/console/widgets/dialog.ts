import { html } from 'htm/preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';

interface Props {
  readonly title: string;
  /** Called when the dialog is closed, by Escape as well. */
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/** A dialog in front of the page, which gets the focus and gives it back where it was. */
export function Dialog({ title, onClose, children }: Props): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return html`
    <dialog ref=${dialog} aria-labelledby=${id} onClose=${onClose}>
      <h2 id=${id}>${title}</h2>
      ${children}
    </dialog>
  `;
}
