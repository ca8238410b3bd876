import { localText } from '../../widgets/format.ts';
import type { Key } from './types.ts';

/** The parts of the form, in their order. */
export const sections = ['Key', 'Money', 'Limits', 'Access', 'Compatibility'] as const;

/** A field of the form: where it is, what it shows of a key, what is expected in it, and what becomes of what is typed. */
interface Field {
  readonly section: (typeof sections)[number];
  readonly of: (key: Key) => string | number | boolean | null;
  readonly label: string;
  readonly hint?: string;
  /** The setting as a body of the admin API has it; a part of the budget has none of its own. */
  readonly bodyOf?: (typed: string) => unknown;
  readonly choices?: readonly (readonly [value: string, text: string])[];
  readonly type?: 'datetime-local';
  readonly rows?: number;
  readonly required?: true;
}

const ofText = { bodyOf: (typed: string) => typed.trim() || null };

/** What is no number is sent as it was typed: the gateway refuses it in its own words. */
const ofNumber = {
  bodyOf: (typed: string) => (/^\d+$/.test(typed.trim()) ? Number(typed) : typed.trim() || null),
};

const ofList = {
  rows: 3,
  bodyOf: (typed: string) => (entriesOf(typed).length === 0 ? null : entriesOf(typed)),
};

const ofTime = { type: 'datetime-local', bodyOf: (typed: string) => asIso(typed.trim()) } as const;

const ofChoice = {
  bodyOf: (chosen: string) => (chosen === 'true' || chosen === 'false' ? chosen === 'true' : chosen),
};

const yesOrNo = {
  ...ofChoice,
  choices: [
    ['true', 'yes'],
    ['false', 'no'],
  ],
} as const;

const byDefault = 'Empty: as the config says.';

/** The settings of a key, under the names that they have in the admin API, in the order of the form. */
// oxfmt-ignore
const fields = {
  name: { section: 'Key', of: ({ name }) => name, label: 'Name', ...ofText, required: true,
    hint: 'Whose key it is, or for which app.' },

  balance: { section: 'Money', of: () => null, label: 'Balance in USD', bodyOf: (typed) => typed.trim() || undefined,
    hint: 'What the key can spend until it is credited, such as 5.00. Empty: it does not pay in advance.' },
  lowBalance: { section: 'Money', of: (key) => key.low_balance, label: 'Low balance in USD', ...ofText,
    hint: `Webhooks are told when the balance falls below it. ${byDefault}` },
  group: { section: 'Money', of: ({ group }) => group, label: 'Group', ...ofText },
  budgetAmount: { section: 'Money', of: ({ budget }) => budget?.amount ?? null, label: 'Budget in USD',
    hint: 'What may be spent in each period, such as 20. Empty: no budget.' },
  budgetPer: { section: 'Money', of: ({ budget }) => budget?.per ?? 'month', label: 'Period of the budget',
    choices: [['day', 'day'], ['week', 'week'], ['month', 'month']] },
  budgetTimeZone: { section: 'Money', of: ({ budget }) => budget?.time_zone ?? null, label: 'Time zone of the period',
    hint: 'Such as Europe/Berlin. Empty: UTC.' },
  budgetWarnAt: { section: 'Money', of: ({ budget }) => (budget?.warn_at ?? []).join(', '),
    label: 'Warn at these parts of the budget', hint: 'Such as 0.8, 0.95. Empty: no warning.' },
  raiseAmount: { section: 'Money', of: ({ budget }) => budget?.raise?.amount ?? null,
    label: 'Raise of the budget in USD', hint: 'More for a time. Empty: no raise.' },
  raiseUntil: { section: 'Money', of: ({ budget }) => asLocal(budget?.raise?.until ?? null), type: 'datetime-local',
    label: 'End of the raise', hint: 'In your time zone.' },

  concurrency: { section: 'Limits', of: ({ limits }) => limits.concurrency, label: 'Requests at once', ...ofNumber,
    hint: byDefault },
  requestsPerMinute: { section: 'Limits', of: ({ limits }) => limits.requests_per_minute, label: 'Requests per minute',
    ...ofNumber, hint: byDefault },
  queueWait: { section: 'Limits', of: ({ limits }) => writeDuration(limits.queue_wait_ms), ...ofText,
    label: 'Longest wait for a slot', hint: `What a request too many waits before its 429, such as 10s. ${byDefault}` },
  weight: { section: 'Limits', of: ({ weight }) => weight, label: 'Weight in the queues of upstreams', ...ofNumber,
    hint: 'With 2, twice as many turns as a key with 1 when requests wait before an upstream. Empty: 1.' },
  joinRetries: { section: 'Limits', of: ({ join_retries_ms: ms }) => (ms === null ? null : writeDuration(ms)), ...ofText,
    label: 'Time for retries to join', hint: 'How long any request goes on, and is paid, whose client has gone, so that the \
retry of an SDK joins it: 1s to 60s. Empty: off.' },
  tokensPerMinute: { section: 'Limits', of: ({ limits }) => limits.tokens_per_minute, label: 'Tokens per minute',
    ...ofNumber, hint: byDefault },
  tokensPerDay: { section: 'Limits', of: ({ limits }) => limits.tokens_per_day, label: 'Tokens per day', ...ofNumber,
    hint: byDefault },

  models: { section: 'Access', of: ({ models }) => (models ?? []).join('\n'), label: 'Models', ...ofList,
    hint: 'Those that the key may use, one a line. Empty: all.' },
  tags: { section: 'Access', of: ({ tags }) => tags.join('\n'), label: 'Tags', ...ofList,
    hint: 'Those that its requests may have, one a line.' },
  allowFrom: { section: 'Access', of: (key) => (key.allow_from ?? []).join('\n'), label: 'Addresses', ...ofList,
    hint: 'Where it may be used from, such as 10.0.0.0/8, one a line. Empty: everywhere.' },
  expiresAt: { section: 'Access', of: (key) => asLocal(key.expires_at), label: 'Expires at', ...ofTime,
    hint: 'In your time zone. Empty: never.' },

  sampling: { section: 'Compatibility', of: ({ compatibility }) => compatibility.sampling, label: 'Sampling values',
    ...ofChoice, choices: [['strip', 'left out'], ['strict', 'refused unless usual']] },
  unknownFields: { section: 'Compatibility', of: ({ compatibility }) => compatibility.unknown_fields,
    label: 'Unknown fields of requests', ...ofChoice, choices: [['reject', 'refused'], ['ignore', 'ignored']] },
  responsesDone: { section: 'Compatibility', of: ({ compatibility }) => compatibility.responses_done,
    label: 'Responses streams end with [DONE]', ...yesOrNo },
  usageCost: { section: 'Compatibility', of: ({ compatibility }) => compatibility.usage_cost,
    label: 'Usage of answers has its cost', ...yesOrNo },
  chargeComment: { section: 'Compatibility', of: ({ compatibility }) => compatibility.charge_comment,
    label: 'Streams have their charge in a comment', ...yesOrNo },
} satisfies Record<string, Field>;

export type FieldName = keyof typeof fields;

/** The fields by their names, in the order of the form. */
export const fieldList = Object.entries<Field>(fields) as readonly (readonly [FieldName, Field])[];

/** What is typed in the form. */
export type FormValues = Readonly<Record<FieldName, string>>;

/** The form without anything in it. */
export const emptyValues: FormValues = { ...valuesBy(() => ''), budgetPer: 'month' };

/** The settings of a key as the form shows them. */
export function valuesOf(key: Key): FormValues {
  return valuesBy(({ of }) => String(of(key) ?? ''));
}

function valuesBy(write: (field: Field) => string): FormValues {
  return Object.fromEntries(fieldList.map(([name, field]) => [name, write(field)])) as FormValues;
}

/**
 * The body that makes or changes a key: the settings that are other ones than before. An emptied one gets its default back; what
 * is empty from the beginning is left to the config's defaults.
 */
export function changesBody(before: FormValues, after: FormValues): object {
  const changed = fieldList.filter(([name]) => after[name] !== before[name]);
  const bodyOf = (isWanted: (field: Field) => boolean) =>
    Object.fromEntries(
      changed.flatMap(([name, field]) =>
        field.bodyOf !== undefined && isWanted(field) ? [[name, field.bodyOf(after[name])]] : [],
      ),
    );
  const compatibility = bodyOf(({ section }) => section === 'Compatibility');
  const isBudget = changed.some(([, field]) => field.bodyOf === undefined);
  const budget = isBudget ? budgetBody(before, after) : undefined;
  return {
    ...bodyOf(({ section }) => section !== 'Compatibility'),
    ...(Object.keys(compatibility).length === 0 ? {} : { compatibility }),
    ...(budget === undefined ? {} : { budget }),
  };
}

/** The labels of the fields that differ, each with what it has after a change. */
export function changedLabels(before: FormValues, after: FormValues): readonly string[] {
  return fieldList
    .filter(([name]) => after[name] !== before[name])
    .map(([name, { label }]) => `${label} is ${after[name] === '' ? 'empty' : after[name]} now`);
}

/**
 * The budget as a body has it: a whole one for a key without a budget, the changes for one that has it, and `null` to end it.
 * `undefined`: there is none, and none is wanted.
 */
function budgetBody(before: FormValues, after: FormValues): object | null | undefined {
  const is = Object.entries(budgetParts(after));
  if (before.budgetAmount !== '') {
    const was = new Map<string, unknown>(Object.entries(budgetParts(before)));
    if (after.budgetAmount.trim() === '') return null;
    return Object.fromEntries(
      is.filter(([name, part]) => JSON.stringify(part) !== JSON.stringify(was.get(name))),
    );
  }
  // A period alone is no wish for a budget: the form has one from the beginning.
  const isWanted = fieldList.some(
    ([name, { bodyOf }]) => bodyOf === undefined && name !== 'budgetPer' && after[name].trim() !== '',
  );
  return isWanted ? Object.fromEntries(is.filter(([, part]) => part !== null && part !== '')) : undefined;
}

/** An emptied time zone is that of a budget without one. */
function budgetParts(values: FormValues) {
  const amount = values.raiseAmount.trim();
  const until = asIso(values.raiseUntil);
  return {
    amount: values.budgetAmount.trim(),
    per: values.budgetPer,
    timeZone: values.budgetTimeZone.trim() || 'UTC',
    warnAt: entriesOf(values.budgetWarnAt),
    raise: amount === '' && until === null ? null : { amount, until: until ?? '' },
  };
}

const minuteMs = 60_000;

/** The length of a date and a time to the minute, as a browser's field has them: `2030-01-01T12:00`. */
const localLength = 16;

/** Milliseconds in the largest unit that needs no fraction, as the admin API reads them: `25s`, `1500ms`. */
function writeDuration(milliseconds: number): string {
  const units = [
    ['h', 3_600_000],
    ['m', minuteMs],
    ['s', 1_000],
    ['ms', 1],
  ] as const;
  const fitting = units.find(([, size]) => milliseconds >= size && milliseconds % size === 0);
  return fitting === undefined ? '0s' : `${milliseconds / fitting[1]}${fitting[0]}`;
}

/** A time as a browser's field shows it, in the zone of the viewer, to the minute. */
function asLocal(iso: string | null): string {
  return iso === null ? '' : localText(iso).slice(0, localLength);
}

/** A time of a browser's field as the admin API reads it; `null` for an empty field. */
function asIso(local: string): string | null {
  if (local === '') return null;
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}

/** The entries of a list: one a line, or between commas. */
function entriesOf(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}
