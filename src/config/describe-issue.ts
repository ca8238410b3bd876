import { stringify } from 'yaml';
import { z } from 'zod';
import { formatByteSize } from '../shared/byte-size.ts';
import { plainDecimal } from '../shared/money.ts';
import { nearestName } from '../shared/nearest-name.ts';
import type { ValueKind } from '../shared/schema-values.ts';
import { whyNotDeclared } from './declared-keys.ts';
import type { Problem } from './problem.ts';
import { writeFreeName } from './quotable.ts';
import { kindOf, knownKeys, schemaAt, unwrap } from './schema/schema-walk.ts';

/** Describes an issue of the schema for the author of a config: its path, what is expected there, and what to write. */
export function describeIssue(
  issue: z.core.$ZodIssue,
  schema: z.ZodType,
  input: unknown,
): readonly Problem[] {
  const { path } = issue;
  const meant = issue.code === 'invalid_union' ? meantOption(issue) : [];
  if (meant.length > 0 && isOtherObject(meant, knownKeys(schema, path)))
    return [describeOtherObject(path, meant)];
  if (issue.code === 'invalid_union')
    return meant.flatMap((inner) =>
      describeIssue({ ...inner, path: [...path, ...inner.path] }, schema, input),
    );
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => ({ path, message }));
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, path);
    return issue.keys.map((key) => describeUnknownKey(path, key, known));
  }
  if (issue.code === 'invalid_value') return [{ path, message: withNearest(issue, valueAt(input, path)) }];
  const here = issue.code === 'invalid_type' ? schemaAt(schema, path) : null;
  const message = here === null ? issue.message : describeType(issue.message, here, valueAt(input, path));
  return [{ path, message }];
}

/** The issues of the form that was meant: of those whose type a value has, the one that knows most of its keys. */
function meantOption({ errors }: z.core.$ZodIssueInvalidUnion): readonly z.core.$ZodIssue[] {
  const [first = errors[0] ?? [], ...others] = errors.filter((issues) => !issues.some(isOfValueItself));
  return others.reduce((best, issues) => (strangeness(issues) < strangeness(best) ? issues : best), first);
}

/** How many keys of an object a form does not know; less if one of them is a misspelt one that the form has. */
function strangeness(issues: readonly z.core.$ZodIssue[]): number {
  const unknown = issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys : []));
  const missing = issues.flatMap(({ code, path }) =>
    code === 'invalid_type' && path.length === 1 ? [String(path[0])] : [],
  );
  return unknown.length - (unknown.some((key) => nearestName(key, missing) !== null) ? 0.5 : 0);
}

/** Whether a value that may be a text, or an object, is an object none of whose keys resembles a known one. */
function isOtherObject(issues: readonly z.core.$ZodIssue[], known: readonly string[]): boolean {
  const unknown = issues.flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys : []));
  const isMissing = issues.some(({ code, path }) => code === 'invalid_type' && path.length === 1);
  return isMissing && unknown.length > 0 && unknown.every((key) => nearestName(key, known) === null);
}

/** A text in braces, or a reference in the form of other template languages, is an object; none of it is quoted. */
function describeOtherObject(path: readonly PropertyKey[], issues: readonly z.core.$ZodIssue[]): Problem {
  const isTemplate = issues.some(
    (issue) => issue.code === 'unrecognized_keys' && issue.keys.some(isInBraces),
  );
  return {
    path,
    message: isTemplate
      ? 'braces make an object of it: write "${NAME}" for an environment variable'
      : 'braces make an object of it: put a text in quotes',
  };
}

/** `{{NAME}}` is an object with an object as its key. */
function isInBraces(key: string): boolean {
  return /^\{.*\}$/s.test(key);
}

/** Whether an issue says that the value itself has another type, or is not the text that is expected. */
function isOfValueItself({ code, path }: z.core.$ZodIssue): boolean {
  return (code === 'invalid_type' || code === 'invalid_value') && path.length === 0;
}

/** What is wrong with an unknown key. Without a blank after its colon, or with another sign, a value is a part of the key. */
function describeUnknownKey(path: readonly PropertyKey[], key: string, known: readonly string[]): Problem {
  const here = [...path, key];
  const reason = whyNotDeclared(path, key);
  if (reason !== null) return { path: here, message: reason };
  if (key.includes(':')) return { path: here, message: 'unknown key: write a blank after the colon' };
  // One value may have several forms with keys of their own.
  if (known.includes(key))
    return { path: here, message: 'not together with the other keys here: leave out either' };
  const [first = '', rest] = key.split(/[= ]/, 2);
  return rest !== undefined && known.includes(first)
    ? { path: here, message: 'unknown key: write a colon and a blank before the value' }
    : { path: here, message: `unknown key${suggestion(key, known)}` };
}

/** Suggests the most similar known name for an unknown one, or lists all known names. */
export function suggestion(wrong: string, known: readonly string[]): string {
  const nearest = nearestName(wrong, known);
  return nearest === null
    ? `; known names: ${known.map(writeFreeName).join(', ')}`
    : `; did you mean '${writeFreeName(nearest)}'?`;
}

/** Completes the message of a value that is none of those to choose from by the most similar one. It is not quoted itself. */
function withNearest({ message, values }: z.core.$ZodIssueInvalidValue, value: unknown): string {
  const known = values.filter((each) => typeof each === 'string');
  if (typeof value !== 'string' || nearestName(value, known) === null) return message;
  return `${message}${suggestion(value, known)}`;
}

/** What is expected where a text with a unit or a form of its own is wanted. */
const nouns: Readonly<Record<ValueKind, string>> = {
  duration: 'a duration',
  size: 'a size',
  usd: 'USD as a decimal string',
  share: 'a percentage such as 5%',
  url: 'an address',
  secret: 'a text',
  key: 'a text',
  instant: 'a time',
  path: 'a text',
  database: 'an address',
};

/** Completes the message of a value with a wrong type by what to write instead. No text is quoted. */
function describeType(message: string, schema: z.ZodType, value: unknown): string {
  const kind = kindOf(schema);
  const named = kind === undefined ? message : message.replace('expected a text', `expected ${nouns[kind]}`);
  if (
    typeof value === 'string' &&
    named.startsWith('expected an object') &&
    isKeyWithValue(value, knownKeys(schema, []))
  )
    return `${named}: write a blank after the colon`;
  const instead =
    typeof value === 'number' || typeof value === 'boolean'
      ? replacementOf(value, kind, schema)
      : exampleOf(schema);
  if (instead === null) return named;
  return value === undefined ? `${named}, ${instead}` : `${named}: write ${instead}`;
}

/** Whether a text is a known key and its value, without a blank after the colon. */
function isKeyWithValue(text: string, known: readonly string[]): boolean {
  const [, name] = /^(\w+):\S/.exec(text) ?? [];
  return name !== undefined && known.includes(name);
}

/** What to write instead of a number or switch. It is quoted, unless the value is a secret. */
function replacementOf(
  value: number | boolean,
  kind: ValueKind | undefined,
  schema: z.ZodType,
): string | null {
  if (kind === 'secret' || kind === 'key' || kind === 'database') return 'it in quotes';
  const inner = unwrap(schema);
  const isText = inner instanceof z.ZodString;
  if (typeof value === 'boolean') return isText ? `it in quotes, "${value}"` : null;
  // With a unit it would be refused, too.
  if (value < 0) return exampleOf(schema);
  if (kind === 'duration') return `${value}s or ${value}ms`;
  if (kind === 'size') return sizeOf(value);
  if (kind === 'usd') return `"${plainDecimal(String(value))}", because a number can lose digits`;
  if (!isText) return null;
  // A text with a form of its own would be refused in quotes, too.
  return inner.safeParse(String(value)).success ? `it in quotes, "${value}"` : exampleOf(schema);
}

/** A size that was written without a unit: bytes if there are many of them. */
function sizeOf(value: number): string {
  return Number.isSafeInteger(value) && value >= 1_024 ? formatByteSize(value) : `${value}MiB or ${value}KiB`;
}

/** An example of a value in YAML: that of its key's description, or else its default. */
function exampleOf(schema: z.ZodType): string | null {
  const [example] = (schema.meta()?.['examples'] ?? []) as readonly unknown[];
  const hasDefault = schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  const value = example ?? (hasDefault ? schema.def.defaultValue : undefined);
  if (value === undefined || typeof value === 'boolean' || JSON.stringify(value) === '{}') return null;
  return `for example ${stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim()}`;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    input,
  );
}
