import { limitsFrom } from '../domain/limits/limits.ts';
import { withoutAbsent } from '../shared/override.ts';
import { z } from 'zod';
import { defaultWeight, isWellFormed } from '../domain/keys/api-key.ts';
import { maxDeclaredKeys } from '../domain/keys/declared-key.ts';
import type { DeclaredKey } from '../domain/keys/declared-key.ts';
import { isGuessable, maxKeyLength, minKeyLength } from '../domain/keys/guessable-key.ts';
import { budgetOf } from '../domain/budgets/budget.ts';
import { budgetOfConfig } from '../shared/budget-values.ts';
import { hashKey } from '../shared/digest.ts';
import { expectedHash, findProblemOfHash, hashPrefix } from '../shared/key-hash.ts';
import { keySettingsOf, leftOut } from '../shared/key-settings.ts';
import { keyName, readUnless, valueKinds } from '../shared/schema-values.ts';
import { describeSurroundings, trueOrFalse, wholeNumber } from './schema/values.ts';
import { writeFreeName } from './quotable.ts';

/** A key in the form of those that the gateway issues, whether its checksum is right or not. */
const issuedForm = /^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43,49}$/;

/** A declared key: its text, or `sha256:` and its hash. Read into the latter, so that no text of a key is kept. */
export const declaredSecret = z
  .string()
  .trim()
  .transform(
    readUnless(findProblem, (text) => (isHash(text) ? text.toLowerCase() : `${hashPrefix}${hashKey(text)}`)),
  )
  .register(valueKinds, { kind: 'key' });

/** Whether a text declares a key by its hash; the prefix may be written in capitals. */
function isHash(text: string): boolean {
  return text.toLowerCase().startsWith(hashPrefix);
}

/** Why a text can't be a key, in words that don't quote it; `null` if it can. */
function findProblem(text: string): string | null {
  if (isHash(text)) return findProblemOfHash(text);
  // Taken as the text of a key, the hash would be the key, and the key that was hashed would not.
  if (/^sha[-_]?256\W/i.test(text)) return expectedHash;
  const surroundings = describeSurroundings(text);
  if (surroundings !== null) return surroundings;
  if (text.length < minKeyLength)
    return `expected ${minKeyLength} characters or more: a shorter key can be guessed`;
  if (text.length > maxKeyLength) return `expected ${maxKeyLength} characters or less`;
  if (!/^[\x21-\x7e]*$/.test(text)) return 'expected printable ASCII without blanks';
  if (issuedForm.test(text) && !isWellFormed(text))
    return 'a textgate key with a typing error: its last characters are a checksum, which does not match';
  return isGuessable(text)
    ? 'can be guessed: expected a random key, such as one made by: openssl rand -hex 32'
    : null;
}

const { limits, terms, compatibility } = keySettingsOf({ wholeNumber, trueOrFalse });

/** Where the config takes a term otherwise than the admin API. */
const otherTerms = {
  allowFrom: terms.allowFrom.refine(
    (networks) => networks.length > 0,
    'expected a network: leave the key out to allow all',
  ),
  budget: budgetOfConfig.describe(
    'What the key may spend in each period of the calendar: a text such as `20/month`, or its settings.',
  ),
};

const declaredKey = z
  .strictObject({
    key: declaredSecret.meta({
      description: `The key, usually a reference to an environment variable: any random text of ${minKeyLength} characters or more; or \`${hashPrefix}\` and its hash.`,
      examples: ['${BOBS_KEY}', `${hashPrefix}${hashKey('an example')}`],
    }),
    ...leftOut({ ...limits, ...terms, ...otherTerms, compatibility }),
  })
  .meta({ examples: [{ key: '${BOBS_KEY}' }] });

/** The keys that the config declares, by name. */
export const declaredKeys = z.record(keyName, declaredKey).superRefine((keys, context) => {
  const entries = Object.entries(keys);
  if (entries.length > maxDeclaredKeys)
    context.addIssue({ code: 'custom', message: `expected ${maxDeclaredKeys} keys or less` });
  const names = new Map<string, string>();
  for (const [name, { key }] of entries) {
    const other = names.get(key);
    if (other === undefined) names.set(key, name);
    else
      context.addIssue({
        code: 'custom',
        path: [name, 'key'],
        message: `the same key as that of ${writeFreeName(other)}: each name needs a key of its own`,
      });
  }
});

/** Why a setting of a key that the admin API has is not declared; `null` for any other. */
export function whyNotDeclared(path: readonly PropertyKey[], key: string): string | null {
  if (path.length !== 2 || path[0] !== 'keys' || key !== 'balance') return null;
  return 'a balance is not declared, because each start would pay it again:\ngive it by credits, which are booked once per reference (textgate keys credit)';
}

/** The declared keys of a checked config. */
export function declaredKeysOf(keys: z.output<typeof declaredKeys>): readonly DeclaredKey[] {
  return Object.entries(keys).map(([name, declared]) => ({
    name,
    hash: declared.key.slice(hashPrefix.length),
    limits: limitsFrom(declared),
    models: declared.models ?? null,
    allowFrom: declared.allowFrom ?? null,
    tags: declared.tags ?? [],
    expiresAt: declared.expiresAt ?? null,
    lowBalanceNanos: declared.lowBalance ?? null,
    compatibility: withoutAbsent(declared.compatibility ?? {}),
    budget: declared.budget === undefined ? null : budgetOf(declared.budget),
    group: declared.group ?? null,
    weight: declared.weight ?? defaultWeight,
    joinRetriesMs: declared.joinRetries ?? null,
  }));
}
