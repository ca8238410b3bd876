import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Compatibility } from './compatibility.ts';
import type { Rule } from './rule.ts';
import { missingParameter, shorten, tooManyFields } from './value-type.ts';

/** The settings for reading one request, and the names collected while reading it. */
export interface ReadContext {
  readonly compatibility: Compatibility;
  /** The names of the stripped fields, each once, in document order. */
  readonly stripped: Set<string>;
}

/** The fields of one kind of object. */
export interface FieldSet {
  /** The prefix of the fields' names in the registry, such as `messages[].`. */
  readonly prefix: string;
  readonly rules: readonly Rule[];
  readonly byName: ReadonlyMap<string, Rule>;
  /** Whether unknown fields follow the service's policy, or are dropped silently. */
  readonly unknown: 'policy' | 'drop';
}

/** Converts the value of a forwarded field into the form that the request needs. */
export type FieldReader = (value: unknown, path: string, context: ReadContext) => unknown;

/** The values of forwarded and echoed fields, by name, without the nulls. */
export type FieldValues = Readonly<Record<string, unknown>>;

/** Creates a field set, with its rules indexed by name. */
export function createFieldSet(
  prefix: string,
  rules: readonly Rule[],
  unknown: FieldSet['unknown'],
): FieldSet {
  return { prefix, rules, unknown, byName: new Map(rules.map((rule) => [rule.name, rule])) };
}

/**
 * Checks an object against its rules. Fields are checked in document order, each with its nested fields before the
 * next, so the first fault in the document is the one reported; missing fields are reported last. `null` in an optional
 * field means that the field is absent.
 */
export function readFields(
  set: FieldSet,
  body: Readonly<Record<string, unknown>>,
  path: string,
  readers: Readonly<Record<string, FieldReader>>,
  context: ReadContext,
): FieldValues | Refusal {
  const names = Object.keys(body);
  const excess = tooManyFields(path, names.length);
  if (excess !== null) return excess;
  const values = Object.create(null) as Record<string, unknown>;
  for (const name of names) {
    const rule = set.byName.get(name);
    if (rule === undefined) {
      const fault = unknownFault(name, set, context);
      if (fault !== null) return fault;
      continue;
    }
    const value = body[name];
    if (value === undefined || (value === null && !isRequired(rule))) continue;
    const fieldPath = `${path}${name}`;
    const fault = rule.type.check(value, fieldPath) ?? policyFault(rule, value, fieldPath, context);
    if (fault !== null) return fault;
    const read = readers[name]?.(value, fieldPath, context) ?? value;
    if (isRefusal(read)) return read;
    if (rule.policy.kind === 'forward' || rule.policy.kind === 'echo') values[name] = read;
    if (rule.policy.kind !== 'forward') context.stripped.add(set.prefix + name);
  }
  const missing = set.rules.find((rule) => isRequired(rule) && values[rule.name] === undefined);
  return missing === undefined ? values : missingParameter(`${path}${missing.name}`);
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
      if (compatibility.sampling === 'strip' || policy.defaults.includes(value as number)) return null;
      return refuse(
        'unsupported_value',
        `Unsupported value: '${path}' does not support ${String(value)} here. Only the model's own default is used: leave it out.`,
        { param: path },
      );
    case 'refuse': {
      if (policy.neutral.some((neutral) => isSame(neutral, value))) return null;
      const at = policy.at === undefined ? path : `${path}.${policy.at}`;
      const fault = policy.code === 'unsupported_value' ? 'value' : 'parameter';
      return refuse(policy.code, `Unsupported ${fault}: '${at}'. ${policy.advice}`, { param: at });
    }
    case 'misplaced':
      return refuse('unknown_parameter', `Unknown parameter: '${path}'. ${policy.advice}`, { param: path });
  }
}

/** Unknown names that may appear in a header. Any other client-chosen name becomes `other`. */
const ordinaryName = /^[\w.-]{1,64}$/;

function unknownFault(name: string, set: FieldSet, { compatibility, stripped }: ReadContext): Refusal | null {
  if (set.unknown === 'drop') return null;
  if (compatibility.unknownFields === 'ignore') {
    stripped.add(ordinaryName.test(name) ? name : 'other');
    return null;
  }
  const shown = shorten(name);
  return refuse('unknown_parameter', `Unknown parameter: '${shown}'. Remove it from the request.`, {
    param: shown,
  });
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
