import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { Fault } from '../../widgets/fault.ts';
import { Field } from '../../widgets/field.ts';
import type { FormValues } from './form-fields.ts';
import { AccessFields, CompatibilityFields, MoneyFields } from './form-sections.ts';
import { limitFields } from './field-texts.ts';
import { writeField } from './write-field.ts';

interface Props {
  readonly values: FormValues;
  readonly onValues: (values: FormValues) => void;
  /** Whether the key is yet to be made; only then it gets a balance. */
  readonly isNew: boolean;
  /** What the gateway says against the values. */
  readonly error: string | null;
  readonly isWaiting: boolean;
  readonly submitLabel: string;
  readonly cancelLink: string;
  readonly onSubmit: () => void;
}

/** The settings of a key. */
export function KeyForm({
  values,
  onValues,
  isNew,
  error,
  isWaiting,
  submitLabel,
  cancelLink,
  onSubmit,
}: Props): VNode {
  const onInput = (name: keyof FormValues, value: string): void => onValues({ ...values, [name]: value });
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!isWaiting) onSubmit();
  };
  return html`
    <form onSubmit=${submit}>
      <fieldset>
        <legend>Key</legend>
        <${Field}
          label="Name"
          value=${values.name}
          onInput=${(name: string) => onInput('name', name)}
          required=${true}
          autocomplete="off"
          hint="Whose key it is, or for which app."
        />
      </fieldset>
      <${MoneyFields} values=${values} onInput=${onInput} isNew=${isNew} />
      <fieldset>
        <legend>Limits</legend>
        ${limitFields.map((field) => writeField(field, values, onInput))}
      </fieldset>
      <${AccessFields} values=${values} onInput=${onInput} />
      <${CompatibilityFields} values=${values} onInput=${onInput} isNew=${isNew} />
      <${Fault} text=${error} />
      <div class="row">
        <button class="primary" aria-disabled=${isWaiting}>${submitLabel}</button>
        <a href=${cancelLink}>Go back</a>
      </div>
    </form>
  `;
}
