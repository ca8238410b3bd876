import { html } from 'htm/preact';
import { useId } from 'preact/hooks';
import type { VNode } from 'preact';

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** What is expected, below the field. */
  readonly hint?: string;
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'date' | 'datetime-local';
  readonly required?: boolean;
  readonly autocomplete?: string;
  readonly placeholder?: string;
  /** The least number, for a field of that type. */
  readonly min?: string;
  /** How exact a time is, in seconds. */
  readonly step?: string;
  /** Several lines, instead of one. */
  readonly rows?: number;
}

/** A field with its label and what is expected in it. */
export function Field({ label, value, onInput, hint, type = 'text', rows, ...others }: Props): VNode {
  const id = useId();
  const shared = {
    id,
    value,
    'aria-describedby': hint === undefined ? undefined : `${id}-hint`,
    onInput: (event: InputEvent) =>
      onInput((event.currentTarget as HTMLInputElement | HTMLTextAreaElement).value),
    ...others,
  };
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${
        rows === undefined
          ? html`<input type=${type} ...${shared} />`
          : html`<textarea rows=${rows} ...${shared}></textarea>`
      }
      ${hint !== undefined && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    </div>
  `;
}

/** Sends a form by a function, and not as the browser would: the page stays. */
export function submitBy(send: () => unknown): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    send();
  };
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

/** A choice among a few values. */
export function Select({ label, value, options, onChange }: SelectProps): VNode {
  const id = useId();
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      <select
        id=${id}
        value=${value}
        onChange=${(event: Event) => onChange((event.currentTarget as HTMLSelectElement).value)}
      >
        ${options.map(
          ([name, text]) =>
            html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`,
        )}
      </select>
    </div>
  `;
}
