import { z } from 'zod';
import { changedBudget } from '../../shared/budget-values.ts';
import { findProblemOfHash, hashPrefix } from '../../shared/key-hash.ts';
import { keySettingsOf, leftOut, leftOutOrNull } from '../../shared/key-settings.ts';
import {
  duration,
  keyName,
  keySearch,
  readUnless,
  storedText,
  usd,
  wholeNumberWithin,
  withoutEndBlanks,
} from '../../shared/schema-values.ts';
import { keyStates } from '../../domain/ports/key-store.ts';
import { ownReferences } from '../../domain/ports/accounts.ts';
import { pageQuery } from '../checked-input.ts';

const maxReferenceLength = 200;

const settings = keySettingsOf({ wholeNumber: wholeNumberWithin, trueOrFalse: z.boolean() });
const { limits } = settings;
const { compatibility } = leftOut({ compatibility: settings.compatibility });

const terms = leftOutOrNull({
  ...settings.terms,
  /** An empty list lifts the restriction, as `null` does. */
  allowFrom: settings.terms.allowFrom.transform((list) => (list.length === 0 ? null : list)),
});

/** The body of a request that creates a key: `null` is no term, as where it is missing. */
export const newKey = z.strictObject({
  name: keyName,
  ...leftOut(limits),
  balance: usd.optional(),
  ...terms,
  compatibility,
});

/** The body of a request that imports a key of another gateway by its hash, which is read into its hexadecimal digits. */
export const importedKey = newKey.extend({
  hash: z
    .string()
    .transform(readUnless(findProblemOfHash, (text) => text.toLowerCase().slice(hashPrefix.length)))
    .meta({
      description: `\`${hashPrefix}\` and the SHA-256 of the whole key, without a salt, in 64 hexadecimal digits.`,
    }),
  dryRun: z
    .boolean()
    .optional()
    .meta({ description: 'Whether the key is only checked, and nothing stored.' }),
});

/** The body of a request that changes one: `null` removes a setting. */
export const changedKey = z.strictObject({
  name: keyName.optional(),
  ...leftOutOrNull(limits),
  ...terms,
  budget: changedBudget.nullish(),
  compatibility,
});

export const rotation = z.strictObject({ grace: duration.default(0) });

export const payment = z.strictObject({
  amount: usd.refine((nanos) => nanos > 0, 'expected more than 0'),
  reference: storedText
    .min(1)
    .max(maxReferenceLength)
    // Another one for each line break or blank, so that a payment would be booked again.
    .regex(/^[^\p{Cc}]*$/u, 'expected a reference without control characters, such as line breaks')
    .regex(withoutEndBlanks, 'expected a reference without blanks at its ends: leave them out')
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
