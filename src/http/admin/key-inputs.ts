import { z } from 'zod';
import {
  duration,
  groupName,
  instant,
  keyName,
  keySearch,
  maxLimit,
  modelsOfKey,
  networksOfKey,
  storedText,
  tagsOfKey,
  usd,
  wholeNumberWithin,
} from '../../shared/schema-values.ts';
import { budgetOfNewKey, changedBudget } from '../../shared/budget-values.ts';
import { samplingPolicies, unknownFieldPolicies } from '../../protocol/contract/compatibility.ts';
import { keyStates } from '../../domain/ports/key-store.ts';
import { ownReferences } from '../../domain/ports/accounts.ts';
import { maxWeight } from '../../domain/keys/api-key.ts';
import { pageQuery } from '../checked-input.ts';

const maxReferenceLength = 200;

const limit = wholeNumberWithin(1, maxLimit);
const weight = wholeNumberWithin(1, maxWeight);
const compatibility = z.strictObject({
  sampling: z.enum(samplingPolicies).optional(),
  unknownFields: z.enum(unknownFieldPolicies).optional(),
  responsesDone: z.boolean().optional(),
  usageCost: z.boolean().optional(),
  chargeComment: z.boolean().optional(),
});
/** An empty list lifts the restriction, as `null` does. */
const allowFrom = networksOfKey.transform((list) => (list.length === 0 ? null : list)).nullish();

/** The body of a request that creates a key. */
export const newKey = z.strictObject({
  name: keyName,
  concurrency: limit.optional(),
  requestsPerMinute: limit.optional(),
  tokensPerMinute: limit.optional(),
  tokensPerDay: limit.optional(),
  queueWait: duration.optional(),
  balance: usd.optional(),
  models: modelsOfKey.nullish().transform((list) => list ?? undefined),
  allowFrom: allowFrom.transform((list) => list ?? undefined),
  tags: tagsOfKey.nullish().transform((list) => list ?? undefined),
  expiresAt: instant.nullish().transform((moment) => moment ?? undefined),
  budget: budgetOfNewKey.nullish().transform((budget) => budget ?? undefined),
  group: groupName.nullish().transform((name) => name ?? undefined),
  weight: weight.nullish().transform((given) => given ?? undefined),
  lowBalance: usd.nullish().transform((nanos) => nanos ?? undefined),
  compatibility: compatibility.optional(),
});

/** The body of a request that changes one: `null` removes a setting. */
export const changedKey = z.strictObject({
  name: keyName.optional(),
  concurrency: limit.nullish(),
  requestsPerMinute: limit.nullish(),
  tokensPerMinute: limit.nullish(),
  tokensPerDay: limit.nullish(),
  queueWait: duration.nullish(),
  models: modelsOfKey.nullish(),
  allowFrom,
  tags: tagsOfKey.nullish(),
  expiresAt: instant.nullish(),
  budget: changedBudget.nullish(),
  group: groupName.nullish(),
  weight: weight.nullish(),
  lowBalance: usd.nullish(),
  compatibility: compatibility.optional(),
});

export const rotation = z.strictObject({ grace: duration.default(0) });

export const payment = z.strictObject({
  amount: usd.refine((nanos) => nanos > 0, 'expected more than 0'),
  reference: storedText
    .min(1)
    .max(maxReferenceLength)
    // Another one for each line break or blank, so that a payment would be booked again.
    .regex(/^[^\p{Cc}]*$/u, 'expected a reference without control characters, such as line breaks')
    .regex(/^(?!\s)(.*\S)?$/su, 'expected a reference without blanks at its ends: leave them out')
    .refine(
      (text) => !text.startsWith(ownReferences),
      `expected a reference that does not begin with ${ownReferences}`,
    ),
});

/** The query of the list. An empty search, as of an empty field of a form, finds all keys. */
export const keyQuery = pageQuery.extend({
  search: keySearch.optional(),
  status: z.enum(keyStates).optional(),
});
