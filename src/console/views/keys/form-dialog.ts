import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';
import { errorText } from '../../api/error-text.ts';
import { Dialog } from '../../widgets/dialog.ts';
import { Fault } from '../../widgets/fault.ts';

interface Props {
  readonly title: string;
  readonly submitLabel: string;
  readonly children?: ComponentChildren;
  readonly onClose: () => void;
  readonly onSubmit: () => Promise<void>;
}

/** A dialog with a form: a refusal is shown in it, and what was typed stays. */
export function FormDialog({ title, submitLabel, children, onClose, onSubmit }: Props): VNode {
  const [error, setError] = useState<string | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isWaiting) return;
    setError(null);
    setIsWaiting(true);
    try {
      await onSubmit();
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsWaiting(false);
    }
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose} onEscape=${isWaiting ? stay : undefined}>
      <form onSubmit=${submit}>
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
