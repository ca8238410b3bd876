import type { FormValues } from './form-fields.ts';

/** How a field of the form is called, and what is expected in it. */
export interface FieldText {
  readonly name: keyof FormValues;
  readonly label: string;
  readonly hint: string;
  readonly type?: 'datetime-local';
  readonly rows?: number;
}

const byDefault = 'Empty: as the config says.';

export const limitFields: readonly FieldText[] = [
  { name: 'concurrency', label: 'Requests at once', hint: byDefault },
  { name: 'requestsPerMinute', label: 'Requests per minute', hint: byDefault },
  {
    name: 'queueWait',
    label: 'Longest wait for a slot',
    hint: `What a request too many waits before its 429, such as 10s. ${byDefault}`,
  },
  {
    name: 'weight',
    label: 'Weight before upstreams',
    hint: 'With 2, twice as many turns as a key with 1 when requests wait before an upstream. Empty: 1.',
  },
  { name: 'tokensPerMinute', label: 'Tokens per minute', hint: byDefault },
  { name: 'tokensPerDay', label: 'Tokens per day', hint: byDefault },
];

export const balanceField: FieldText = {
  name: 'balance',
  label: 'Balance in USD',
  hint: 'What the key can spend until it is credited, such as 5.00. Empty: it does not pay in advance.',
};

export const budgetFields: readonly FieldText[] = [
  {
    name: 'budgetAmount',
    label: 'Budget in USD',
    hint: 'What may be spent in each period, such as 20. Empty: no budget.',
  },
  {
    name: 'budgetTimeZone',
    label: 'Time zone of the period',
    hint: 'Such as Europe/Berlin. Empty: UTC.',
  },
  {
    name: 'budgetWarnAt',
    label: 'Warn at these parts of the budget',
    hint: 'Such as 0.8, 0.95. Empty: no warning.',
  },
  { name: 'raiseAmount', label: 'Raise of the budget in USD', hint: 'More for a time. Empty: no raise.' },
  {
    name: 'raiseUntil',
    label: 'End of the raise',
    hint: 'In your time zone.',
    type: 'datetime-local',
  },
];

export const lowBalanceField: FieldText = {
  name: 'lowBalance',
  label: 'Low balance in USD',
  hint: `Webhooks are told when the balance falls below it. ${byDefault}`,
};

export const accessFields: readonly FieldText[] = [
  {
    name: 'models',
    label: 'Models',
    hint: 'Those that the key may use, one a line. Empty: all.',
    rows: 3,
  },
  { name: 'tags', label: 'Tags', hint: 'Those that its requests may have, one a line.', rows: 3 },
  {
    name: 'allowFrom',
    label: 'Addresses',
    hint: 'Where it may be used from, such as 10.0.0.0/8, one a line. Empty: everywhere.',
    rows: 3,
  },
  {
    name: 'expiresAt',
    label: 'Expires at',
    hint: 'In your time zone. Empty: never.',
    type: 'datetime-local',
  },
];
