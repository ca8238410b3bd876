import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath } from '../../api/admin-api.ts';
import { useAction } from '../../api/use-action.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { fieldList, sections } from './key-fields.ts';
import type { FieldName, FormValues } from './key-fields.ts';
import type { Group, Page } from './types.ts';

interface Props {
  /** What is in the form at first. */
  readonly before: FormValues;
  /** Whether the key is yet to be made; only then it gets a balance, and settings of its own only where they are chosen. */
  readonly isNew: boolean;
  readonly submitLabel: string;
  readonly cancelLink: string;
  /** Rejects with what the gateway says against the values. */
  readonly onSubmit: (values: FormValues) => Promise<void>;
}

/** The settings of a key. */
export function KeyForm({ before, isNew, submitLabel, cancelLink, onSubmit }: Props): VNode {
  const [values, setValues] = useState(before);
  const { run, isWaiting, error } = useAction(async () => {
    await onSubmit(values);
    if (isNew) setValues(before);
  });
  const input = (name: FieldName) => (value: string) => setValues({ ...values, [name]: value });
  return html`
    <form onSubmit=${submitBy(run)}>
      ${sections.map(
        (title) => html`
          <fieldset key=${title}>
            <legend>${title}</legend>
            ${fieldList
              .filter(([name, { section }]) => section === title && (isNew || name !== 'balance'))
              .map(([name, field]) => writeField(name, field, values[name], input(name), isNew))}
          </fieldset>
        `,
      )}
      <${Fault} text=${error} />
      <div class="row">
        <button class="primary" aria-disabled=${isWaiting}>${submitLabel}</button>
        <a href=${cancelLink}>Go back</a>
      </div>
    </form>
  `;
}

function writeField(
  name: FieldName,
  { section, label, choices, hint, type, rows, required }: (typeof fieldList)[number][1],
  value: string,
  onInput: (value: string) => void,
  isNew: boolean,
): VNode {
  if (name === 'group') return html`<${GroupSelect} key=${name} group=${value} onChange=${onInput} />`;
  if (choices === undefined)
    return html`<${Field}
      key=${name}
      label=${label}
      value=${value}
      onInput=${onInput}
      autocomplete="off"
      hint=${hint}
      type=${type}
      rows=${rows}
      required=${required}
    />`;
  const isLeftOut = isNew && section === 'Compatibility';
  return html`<${Select}
    key=${name}
    label=${label}
    value=${value}
    options=${[...(isLeftOut ? [['', 'as the config says']] : []), ...choices]}
    onChange=${onInput}
  />`;
}

interface GroupProps {
  readonly group: string;
  readonly onChange: (group: string) => void;
}

/** The group stays among the choices while the groups are asked for, and when the config has it no more. */
function GroupSelect({ group, onChange }: GroupProps): VNode {
  const { answer } = useAnswer<Page<Group>>(adminPath('groups'));
  const names = new Set([...(answer?.data ?? []).map(({ name }) => name), ...(group === '' ? [] : [group])]);
  return html`<${Select}
    label="Group"
    value=${group}
    options=${[['', 'none'], ...[...names].map((name) => [name, name])]}
    onChange=${onChange}
  />`;
}
