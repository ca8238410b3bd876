import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer } from '../../api/use-answer.ts';
import { Select } from '../../widgets/field.ts';
import { accessFields, balanceField, budgetFields, lowBalanceField } from './field-texts.ts';
import type { FormValues } from './form-fields.ts';
import type { Group, Page } from './types.ts';
import { writeField } from './write-field.ts';

interface Props {
  readonly values: FormValues;
  readonly onInput: (name: keyof FormValues, value: string) => void;
}

interface SettingsProps extends Props {
  readonly isNew: boolean;
}

/** What the key may spend, alone and with its group. */
export function MoneyFields({ values, onInput, isNew }: SettingsProps): VNode {
  const [amount, ...others] = budgetFields.map((field) => writeField(field, values, onInput));
  return html`
    <fieldset>
      <legend>Money</legend>
      ${isNew && writeField(balanceField, values, onInput)} ${writeField(lowBalanceField, values, onInput)}
      <${GroupSelect} values=${values} onInput=${onInput} />
      ${amount}
      <${Select}
        label="Period of the budget"
        value=${values.budgetPer}
        options=${['day', 'week', 'month'].map((per) => [per, per])}
        onChange=${(per: string) => onInput('budgetPer', per)}
      />
      ${others}
    </fieldset>
  `;
}

/** The group stays among the choices while the groups are asked for, and when the config has it no more. */
function GroupSelect({ values: { group }, onInput }: Props): VNode {
  const { answer } = useAnswer<Page<Group>>(adminPath('groups'));
  const names = new Set([...(answer?.data ?? []).map(({ name }) => name), ...(group === '' ? [] : [group])]);
  return html`<${Select}
    label="Group"
    value=${group}
    options=${[['', 'none'], ...[...names].map((name) => [name, name])]}
    onChange=${(name: string) => onInput('group', name)}
  />`;
}

/** What the key may be used for, from where, and until when. */
export function AccessFields({ values, onInput }: Props): VNode {
  return html`
    <fieldset>
      <legend>Access</legend>
      ${accessFields.map((field) => writeField(field, values, onInput))}
    </fieldset>
  `;
}

const yesOrNo = [
  ['true', 'yes'],
  ['false', 'no'],
] as const;

/** The choices of each setting, as the admin API names them. */
const choices = [
  [
    'sampling',
    'Sampling values',
    [
      ['strip', 'left out'],
      ['strict', 'refused unless usual'],
    ],
  ],
  [
    'unknownFields',
    'Unknown fields of requests',
    [
      ['reject', 'refused'],
      ['ignore', 'ignored'],
    ],
  ],
  ['responsesDone', 'Responses streams end with [DONE]', yesOrNo],
  ['usageCost', 'Usage of answers has its cost', yesOrNo],
  ['chargeComment', 'Streams have their charge in a comment', yesOrNo],
] as const;

/** How strictly requests are read, and what old clients need. */
export function CompatibilityFields({ values, onInput, isNew }: SettingsProps): VNode {
  return html`
    <fieldset>
      <legend>Compatibility</legend>
      ${choices.map(
        ([name, label, options]) =>
          html`<${Select}
            key=${name}
            label=${label}
            value=${values[name]}
            options=${[...(isNew ? [['', 'as the config says']] : []), ...options]}
            onChange=${(value: string) => onInput(name, value)}
          />`,
      )}
    </fieldset>
  `;
}
