import { AdminRefusal } from '../admin-client.ts';

/** What an operator writes for a field of the admin API; other fields have the name of their argument. */
const options: Readonly<Record<string, string>> = {
  concurrency: '--concurrency',
  requestsPerMinute: '--requests-per-minute',
  tokensPerMinute: '--tokens-per-minute',
  tokensPerDay: '--tokens-per-day',
  queueWait: '--queue-wait',
  balance: '--balance',
  models: '--model',
  allowFrom: '--allow-from',
  tags: '--tags',
  expiresAt: '--expires',
  lowBalance: '--low-balance',
  group: '--group',
  weight: '--weight',
  'compatibility.sampling': '--sampling',
  'compatibility.unknownFields': '--unknown-fields',
  'compatibility.responsesDone': '--responses-done',
  'compatibility.usageCost': '--usage-cost',
  'compatibility.chargeComment': '--charge-comment',
  budget: '--budget',
  'budget.amount': '--budget',
  'budget.per': '--budget',
  'budget.timeZone': '--time-zone',
  'budget.warnAt': '--warn-at',
  'budget.raise.amount': '--raise',
  'budget.raise.until': '--raise-until',
  grace: '--grace',
  reference: '--reference',
  from: '--from',
  to: '--to',
  amount: '<usd>',
  name: 'the name',
  by: '--by',
  outcome: '--outcome',
};

/** Calls the admin API; a refusal that names a field names the option or argument instead. */
export async function withOptionNames<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof AdminRefusal)) throw error;
    const named = error.message.replace(/^Invalid '([\w.]+)': /, (whole, field: string) => {
      const option = options[field.replace(/\.\d+$/, '')];
      return option === undefined ? whole : `${option}: `;
    });
    throw new AdminRefusal(error.status, named);
  }
}
