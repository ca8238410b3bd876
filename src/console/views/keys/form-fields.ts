/** The form's fields without anything in them. */
export const emptyValues = {
  name: '',
  concurrency: '',
  requestsPerMinute: '',
  tokensPerMinute: '',
  tokensPerDay: '',
  queueWait: '',
  weight: '',
  balance: '',
  lowBalance: '',
  budgetAmount: '',
  budgetPer: 'month',
  budgetTimeZone: '',
  budgetWarnAt: '',
  raiseAmount: '',
  raiseUntil: '',
  group: '',
  models: '',
  tags: '',
  allowFrom: '',
  expiresAt: '',
  sampling: '',
  unknownFields: '',
  responsesDone: '',
  usageCost: '',
  chargeComment: '',
};

/** What is typed in the form of a key: texts, under the names that settings have in the admin API. */
export type FormValues = Readonly<typeof emptyValues>;
