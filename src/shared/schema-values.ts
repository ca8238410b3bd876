import { z } from 'zod';
import { visibleText } from './control-characters.ts';
import { parseDuration } from './duration.ts';
import { maxNanos, nanosPerUsd, parseUsd } from './money.ts';
import { canonicalNetwork, enclosingNetwork } from './networks.ts';
import { whyNotStorable } from './storable-text.ts';

/**
 * The longest duration that a timer can hold, in milliseconds: about 24 days. A longer one would end at once. It is also
 * the largest number in a column of integers, in which PostgreSQL has the wait for a slot.
 */
const maxDurationMs = 2_147_483_647;

/** What the value of a schema is read from, and how it is written: a number alone does not say its unit. */
export type ValueKind =
  | 'duration'
  | 'size'
  | 'usd'
  | 'share'
  | 'url'
  | 'secret'
  | 'key'
  | 'instant'
  | 'path'
  | 'database';

/** The kind of every schema whose value is written otherwise than it is kept. */
export const valueKinds = z.registry<{ readonly kind: ValueKind }>();

/** Reads a text into a value, for `transform`: `read` returns `null` for a text that is none, and `fault` says why. */
export function readBy<Value>(read: (text: string) => Value | null, fault: (text: string) => string) {
  return (text: string, context: z.core.$RefinementCtx<string>): Value => {
    const value = read(text);
    if (value !== null) return value;
    context.issues.push({ code: 'custom', input: text, message: fault(text) });
    return z.NEVER;
  };
}

/** The same where `describe` returns what is wrong with a text, `null` if nothing is, and `read` reads all others. */
export function readUnless<Value>(describe: (text: string) => string | null, read: (text: string) => Value) {
  return readBy(
    (text) => (describe(text) === null ? read(text) : null),
    (text) => describe(text) ?? '',
  );
}

/** Refuses a text with what is wrong with it, for `superRefine`: `describe` returns `null` if nothing is. */
export function refuseBy(describe: (text: string) => string | null) {
  return (text: string, context: z.core.$RefinementCtx<string>): void => {
    const message = describe(text);
    if (message !== null) context.addIssue({ code: 'custom', message });
  };
}

/** A duration such as `5s`, read into milliseconds. */
export const duration = z
  .string()
  .transform(
    readBy(
      (text) => within(parseDuration(text), 0, maxDurationMs),
      () => 'expected a duration such as 250ms, 5s or 10m, and at most 24d',
    ),
  )
  .register(valueKinds, { kind: 'duration' });

/** USD as a decimal string, read into nano-USD: a number in JSON or JavaScript could already have lost digits. */
export const usd = z
  .string()
  .transform(
    readBy(parseUsd, (text) =>
      /^\d+(\.\d{1,9})?$/.test(text)
        ? `expected at most ${Math.floor(maxNanos / nanosPerUsd)} USD`
        : 'expected USD as a decimal number with at most 9 digits after the point, such as "0.15"',
    ),
  )
  .register(valueKinds, { kind: 'usd' });

/** The first and the last instant that ISO 8601 writes with four digits of the year. An offset may lead beyond them. */
const firstInstantMs = Date.parse('0000-01-01T00:00:00.000Z');
const lastInstantMs = Date.parse('9999-12-31T23:59:59.999Z');

const isoInstant = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);
const isInstant = (text: string): boolean => isoInstant.safeParse(text).success;

/** An instant, read into milliseconds since 1970: ISO 8601 with an offset, or a day, which begins at midnight UTC. */
export const instant = z
  .string()
  .transform(
    readBy(
      (text) => (isInstant(text) ? within(Date.parse(text), firstInstantMs, lastInstantMs) : null),
      (text) =>
        isInstant(text)
          ? 'expected a time whose year in UTC is from 0000 to 9999'
          : 'expected a time such as 2030-01-01T00:00:00Z, or a day',
    ),
  )
  .register(valueKinds, { kind: 'instant' });

/** A number if it is within bounds; `null` otherwise. */
export function within(value: number | null, min: number, max: number): number | null {
  return value !== null && value >= min && value <= max ? value : null;
}

/** A whole number within bounds. Only its first fault is reported: one of a huge number would be said twice. */
export function wholeNumberWithin(min: number, max: number) {
  return z.number().min(min, { abort: true }).max(max, { abort: true }).int();
}

/** The most requests that a limit of a key may allow: the largest number in PostgreSQL's columns of integers. */
export const maxLimit = 2_147_483_647;

/** A text that is stored, or compared with stored ones. */
export const storedText = z.string().superRefine(refuseBy(whyNotStorable));

/** A text without blanks at its ends, which are not seen: with one it would be another text that looks the same. */
export const withoutEndBlanks = /^(?!\s)(.*\S)?$/su;

/** A name that is read by people: what is not seen in it would hide that it is another one, or turn around what is behind it. */
export const readName = z
  .string()
  .min(1, 'expected a name that is not empty')
  .regex(visibleText, 'expected a name without control characters, direction marks and zero-width characters')
  .regex(withoutEndBlanks, 'expected a name without blanks at its ends: leave them out')
  .refine(
    (name) => name.isWellFormed(),
    'expected a name of whole characters: it has half of a surrogate pair',
  );

const maxKeyNameLength = 100;

/** The name of a key. */
export const keyName = readName
  .max(maxKeyNameLength)
  .refine((name) => !/^key_[A-Za-z0-9]{12}$/.test(name), 'expected a name that is not in the form of an id');

/** The longest name of a model in a list, of prices or of an upstream, in characters. */
export const maxModelNameLength = 200;

/** What keys are searched for: a part of a name, or the beginning of an id. */
export const keySearch = storedText.max(maxKeyNameLength);

/** The longest name of a group, in characters. */
const maxGroupLength = 64;

/** The name of a group: a part of ids and of names of budgets, which blanks end. */
export const groupName = z
  .string()
  .max(maxGroupLength)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    'expected letters, digits and . _ - in the name of a group, and a letter or a digit at its beginning',
  );

const maxModelsOfKey = 1_000;

/** The models that a key may use, each by its whole name. */
export const modelsOfKey = z
  .array(
    storedText.min(1).regex(/^[^*]*$/, 'expected the name of one model: patterns with * are not read here'),
  )
  .min(1)
  .max(maxModelsOfKey);

/** How many tags a key may have: a refusal lists all of them, and each has usage sums of its own. */
const maxTagsOfKey = 32;

/** The longest tag, in characters. */
const maxTagLength = 64;

/** A tag: no other header, list or line can be read from one, and no spreadsheet takes one for a formula. */
const tag = z
  .string()
  .max(maxTagLength)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:-]*$/,
    'expected letters, digits and . _ : - in a tag, and a letter or a digit at its beginning',
  );

/** The tags that the requests of a key may have. */
export const tagsOfKey = z
  .array(tag)
  .max(maxTagsOfKey)
  .transform((tags) => [...new Set(tags)]);

/** An IP address, or a network in CIDR notation, read into its one form; or one of some names for networks. */
export function networkOr(...names: readonly string[]) {
  const otherwise = names.length === 0 ? '' : `, or one of the names ${names.join(', ')}`;
  return z.string().transform((text, context) => {
    const trimmed = text.trim();
    const read = names.includes(trimmed) ? trimmed : canonicalNetwork(trimmed);
    const whole = read === null || names.includes(read) ? read : enclosingNetwork(read);
    if (read !== null && read === whole) return read;
    context.issues.push({
      code: 'custom',
      input: text,
      message:
        whole === null
          ? `expected an IP address or a network, such as 203.0.113.9, 10.0.0.0/8 or 2001:db8::/32${otherwise}`
          : `an address with the prefix of its network: write ${whole} for the network, or the address alone`,
    });
    return z.NEVER;
  });
}

/** How many networks the list of a key may have: all of them are compared with the address of a request. */
const maxNetworksOfKey = 64;

/** The networks from which a key may be used. */
export const networksOfKey = z
  .array(networkOr())
  .max(maxNetworksOfKey)
  .transform((networks) => [...new Set(networks)]);
