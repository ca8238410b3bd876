import { budgetBody, budgetNames } from './budget-body.ts';
import { asLocal, writeDuration } from './form-texts.ts';
import { bodyValue, names } from './body-value.ts';
import { emptyValues } from './form-fields.ts';
import type { FormValues } from './form-fields.ts';
import type { Key } from './types.ts';

const compatibilityNames = [
  'sampling',
  'unknownFields',
  'responsesDone',
  'usageCost',
  'chargeComment',
] as const;

/** The settings of a key as the form shows them. */
export function valuesOf({ limits, compatibility, budget, ...key }: Key): FormValues {
  return {
    name: key.name,
    concurrency: text(limits.concurrency),
    requestsPerMinute: text(limits.requests_per_minute),
    tokensPerMinute: text(limits.tokens_per_minute),
    tokensPerDay: text(limits.tokens_per_day),
    queueWait: writeDuration(limits.queue_wait_ms),
    weight: text(key.weight),
    balance: '',
    lowBalance: text(key.low_balance),
    budgetAmount: text(budget?.amount ?? null),
    budgetPer: budget?.per ?? 'month',
    budgetTimeZone: text(budget?.time_zone ?? null),
    budgetWarnAt: (budget?.warn_at ?? []).join(', '),
    raiseAmount: text(budget?.raise?.amount ?? null),
    raiseUntil: asLocal(budget?.raise?.until ?? null),
    group: text(key.group),
    models: (key.models ?? []).join('\n'),
    tags: key.tags.join('\n'),
    allowFrom: (key.allow_from ?? []).join('\n'),
    expiresAt: asLocal(key.expires_at),
    sampling: compatibility.sampling,
    unknownFields: compatibility.unknown_fields,
    responsesDone: String(compatibility.responses_done),
    usageCost: String(compatibility.usage_cost),
    chargeComment: String(compatibility.charge_comment),
  };
}

/** The body that makes a key: what is empty is left to the config's defaults. */
export function newKeyBody(values: FormValues): object {
  const { balance } = values;
  return {
    ...changesBody(emptyValues, values),
    ...(balance.trim() === '' ? {} : { balance: balance.trim() }),
  };
}

/** The body that changes a key: the settings that are other ones than before. An emptied one gets its default back. */
export function changesBody(before: FormValues, after: FormValues): object {
  const body: Record<string, unknown> = {};
  for (const name of names) if (after[name] !== before[name]) body[name] = bodyValue(name, after[name]);
  const compatibility = Object.fromEntries(
    compatibilityNames.flatMap((name) =>
      after[name] === before[name] ? [] : [[name, choiceOf(after[name])]],
    ),
  );
  if (Object.keys(compatibility).length > 0) body['compatibility'] = compatibility;
  if (budgetNames.some((name) => after[name] !== before[name])) {
    const budget = budgetBody(before, after);
    if (budget !== undefined) body['budget'] = budget;
  }
  return body;
}

function choiceOf(name: string): string | boolean {
  return name === 'true' || name === 'false' ? name === 'true' : name;
}

function text(value: number | string | null): string {
  return value === null ? '' : String(value);
}
