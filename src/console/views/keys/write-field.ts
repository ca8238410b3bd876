import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { Field } from '../../widgets/field.ts';
import type { FieldText } from './field-texts.ts';
import type { FormValues } from './form-fields.ts';

/** One field of the form with its texts. */
export function writeField(
  { name, ...texts }: FieldText,
  values: FormValues,
  onInput: (name: keyof FormValues, value: string) => void,
): VNode {
  return html`<${Field}
    key=${name}
    value=${values[name]}
    onInput=${(value: string) => onInput(name, value)}
    autocomplete="off"
    ...${texts}
  />`;
}
