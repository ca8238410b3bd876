import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import type { Compatibility } from './compatibility.ts';
import type { Rule } from './rule.ts';
import { missingParameter, shorten, tooManyFields, unsupportedValue } from './value-refusals.ts';

/** The settings for reading one request, and the names collected while reading it. */
export interface ReadContext {
  readonly compatibility: Compatibility;
  readonly stripped: StrippedNames;
}

/** The fields of one kind of object. */
export interface FieldSet {
  /** The prefix of the fields' names in the registry, such as `messages[].`. */
  readonly prefix: string;
  readonly rules: readonly Rule[];
  /** Whether unknown fields follow the service's policy, or are always stripped. */
  readonly unknown: 'policy' | 'strip';
}

/** Converts the value of a forwarded field into the form that the request needs. */
type FieldReader = (value: unknown, path: string, context: ReadContext) => unknown;

/** The values of the fields that are forwarded, echoed or used here, by name, without the nulls. */
export type FieldValues = Readonly<Record<string, unknown>>;

/** Reads an object of one kind. `path` is the prefix of its fields' paths, empty for the body. */
export type ObjectReader = (body: JsonObject, path: string, context: ReadContext) => FieldValues | Refusal;

type JsonObject = Readonly<Record<string, unknown>>;

/** A rule, and all that does not depend on a value. */
interface Field {
  readonly rule: Rule;
  readonly isRequired: boolean;
  readonly read: FieldReader | null;
  readonly isKept: boolean;
  /** The name under which the field is reported as stripped; `null` for one that is used. */
  readonly strippedAs: string | null;
}

/**
 * Makes the reader of objects with these fields: it checks an object against its rules, and converts the values of fields
 * that have a reader. Fields are checked in document order, each with its nested fields before the next, so the first fault
 * in the document is the one reported; missing fields are reported last. `null` in an optional field, and in one that
 * is in no table, means that the field is absent.
 */
export function objectReader(
  set: FieldSet,
  readers: Readonly<Record<string, FieldReader>> = {},
): ObjectReader {
  const fields = new Map(set.rules.map((rule) => [rule.name, fieldOf(rule, set.prefix, readers)]));
  const required = set.rules.filter(isRequired).map(({ name }) => name);
  const suggested = set.rules.filter(isSuggested).map(({ name }) => name);
  return (body, path, context) => {
    const names = Object.keys(body);
    const excess = tooManyFields(path, names.length);
    if (excess !== null) return excess;
    // Only names of the contract are written into it, none of which every object has.
    const values: Record<string, unknown> = {};
    for (const name of names) {
      const field = fields.get(name);
      if (field === undefined) {
        if (body[name] === null) continue;
        const fault = unknownFault(name, path, { set, suggested }, context);
        if (fault !== null) return fault;
        continue;
      }
      const value = body[name];
      if (value === undefined || (value === null && !field.isRequired)) continue;
      const read = readField(field, value, path + name, context);
      if (isRefusal(read)) return read;
      if (field.isKept) values[name] = read;
      if (field.strippedAs !== null) context.stripped.add(field.strippedAs);
    }
    for (const name of required) if (values[name] === undefined) return missingParameter(path + name);
    return values;
  };
}

function fieldOf(rule: Rule, prefix: string, readers: Readonly<Record<string, FieldReader>>): Field {
  const { policy } = rule;
  const { kind } = policy;
  return {
    rule,
    isRequired: isRequired(rule),
    read: readers[rule.name] ?? null,
    isKept: kind === 'forward' || kind === 'echo' || (kind === 'strip' && policy.isKept === true),
    strippedAs: kind === 'forward' ? null : prefix + rule.name,
  };
}

function readField({ rule, read }: Field, value: unknown, path: string, context: ReadContext): unknown {
  const fault = rule.type.check(value, path) ?? policyFault(rule, value, path, context);
  if (fault !== null) return fault;
  return read === null ? value : read(value, path, context);
}

/** A reader for a field whose value is an object with fields of its own. */
export function nested(set: FieldSet, readers?: Readonly<Record<string, FieldReader>>): FieldReader {
  const read = objectReader(set, readers);
  return (value, path, context) => read(value as JsonObject, `${path}.`, context);
}

/** The same for an object with a `type`. It is read first, since a fault in it explains those of the other fields. */
export function nestedByType(set: FieldSet): FieldReader {
  const read = nested(set);
  return (value, path, context) => {
    const object = value as JsonObject;
    return read({ type: object['type'], ...object }, path, context);
  };
}

function isRequired({ policy }: Rule): boolean {
  return policy.kind === 'forward' && policy.required === true;
}

function policyFault(
  { policy }: Rule,
  value: unknown,
  path: string,
  { compatibility }: ReadContext,
): Refusal | null {
  switch (policy.kind) {
    case 'forward':
    case 'strip':
    case 'echo':
      return null;
    case 'sampling':
      return compatibility.sampling === 'strip' || policy.defaults.includes(value as number)
        ? null
        : refuse(
            'unsupported_value',
            `Unsupported value: '${path}' does not support ${String(value)} here. Only the model's own default is used: leave it out.`,
            { param: path },
          );
    case 'refuse':
      if (policy.neutral.some((neutral) => isSame(neutral, value))) return null;
      return policy.code === 'unsupported_value'
        ? unsupportedValue(path, policy.advice)
        : refuse(
            policy.code,
            `Unsupported parameter: '${path}'. ${policy.advice} Leave this parameter out.`,
            { param: path },
          );
    case 'misplaced':
      return refuse('unknown_parameter', `Unknown parameter: '${path}'. ${policy.advice}`, { param: path });
  }
}

/** The shortest name that is suggested for an unknown one: almost any word is close to a shorter one. */
const minSuggestedChars = 4;

function unknownFault(
  name: string,
  path: string,
  { set, suggested }: { readonly set: FieldSet; readonly suggested: readonly string[] },
  { compatibility, stripped }: ReadContext,
): Refusal | null {
  if (set.unknown === 'strip' || compatibility.unknownFields === 'ignore') {
    stripped.addUnlisted(set.prefix, name);
    return null;
  }
  const shown = path + shorten(name);
  const meant = nearestName(shorten(name), suggested);
  const advice = meant === null ? 'Remove it from the request.' : `Did you mean '${path}${meant}'?`;
  return refuse('unknown_parameter', `Unknown parameter: '${shown}'. ${advice}`, { param: shown });
}

/** Whether a field may be suggested for an unknown one: not if it would be refused, too. */
function isSuggested({ name, policy }: Rule): boolean {
  const isRefused = policy.kind === 'misplaced' || (policy.kind === 'refuse' && policy.neutral.length === 0);
  return !isRefused && name.length >= minSuggestedChars;
}

/** Whether a value equals a neutral one, in any order of keys. */
function isSame(neutral: unknown, value: unknown): boolean {
  if (typeof neutral !== 'object' || typeof value !== 'object' || neutral === null || value === null)
    return neutral === value;
  if (Array.isArray(neutral) !== Array.isArray(value)) return false;
  const keys = Object.keys(neutral);
  if (keys.length !== Object.keys(value).length) return false;
  const [left, right] = [neutral as Record<string, unknown>, value as Record<string, unknown>];
  return keys.every((key) => Object.hasOwn(right, key) && isSame(left[key], right[key]));
}

/** How many names of unlisted fields are kept for one request; further ones become `other`. */
const maxUnlisted = 32;

/** Unlisted names that may appear in a header. Any other client-chosen name becomes `other`. */
const ordinaryName = /^[\w.-]{1,64}$/;

const other = 'other';

/**
 * The names of the fields that were stripped from one request, each once, in document order. Fields of list entries
 * have one name for the whole list, such as `messages[].name`, so a long history adds no more names than a short one.
 */
export class StrippedNames {
  /** Made for the first name: most requests have none. */
  #names: Set<string> | null = null;
  #unlisted = 0;

  /** Adds the name of a field in the registry. */
  add(name: string): void {
    (this.#names ??= new Set()).add(name);
  }

  /** Adds a name that the client made up. Their number is bounded: they stand in a header and in the log. */
  addUnlisted(prefix: string, name: string): void {
    const full = prefix + (ordinaryName.test(name) ? name : other);
    if (this.#names?.has(full) === true) return;
    const isKept = this.#unlisted++ < maxUnlisted;
    this.add(isKept ? full : other);
  }

  list(): readonly string[] {
    return this.#names === null ? [] : [...this.#names];
  }
}
