import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';
import {
  invalidType,
  invalidValue,
  maxFields,
  outOfRange,
  shorten,
  tooManyFields,
} from './value-refusals.ts';

/** Checks one value at `path` (such as `messages[3].content`); `null` means that it passed. */
type Check<Value = unknown> = (value: Value, path: string) => Refusal | null;

/**
 * The values that a field may hold, with some valid samples and a wrong one: the tests of the whole contract are
 * generated from these. A type that accepts anything has no wrong value.
 */
export interface ValueType {
  /** The type with its article, for error messages. */
  readonly expected: string;
  /** Whether a value has the type at all; `check` also judges what is in it. */
  readonly fits: (value: unknown) => boolean;
  readonly check: Check;
  /** The type as JSON Schema, for the OpenAPI document. */
  readonly json: Readonly<Record<string, unknown>>;
  readonly samples: readonly unknown[];
  readonly wrong?: unknown;
}

export const string = typed('a string', isString, { type: 'string' }, { samples: ['text'], wrong: 7 });
export const boolean = typed(
  'a boolean',
  (value) => typeof value === 'boolean',
  { type: 'boolean' },
  { samples: [true, false], wrong: 'true' },
);
export const array = arrayType('an array', {});
export const object = typed(
  'an object',
  isPlainObject,
  { type: 'object' },
  { samples: [{ some: 'thing' }], wrong: [] },
);

/** An array whose entries are checked by its reader; `items` names them in the refusal, and `json` says more of them. */
export function arrayOf(items: string, json: ValueType['json'] = {}): ValueType {
  return arrayType(`an array of ${items}`, json);
}

function arrayType(expected: string, json: ValueType['json']): ValueType {
  return typed(expected, Array.isArray, { type: 'array', ...json }, { samples: [[{}]], wrong: {} });
}

/** The type of the values that `fits` lets through, as far as `judge` finds nothing wrong in them. */
function typed<Value>(
  expected: string,
  fits: (value: unknown) => value is Value,
  json: ValueType['json'],
  examples: Required<Pick<ValueType, 'samples' | 'wrong'>>,
  judge: Check<Value> | null = null,
): ValueType {
  const check: Check = (value, path) => {
    if (!fits(value)) return invalidType(path, expected, value);
    return judge === null ? null : judge(value, path);
  };
  return { expected, fits, check, json, ...examples };
}

/** For fields whose policy does not depend on their value. */
export const anything: ValueType = {
  expected: 'any value',
  fits: () => true,
  check: () => null,
  json: {},
  samples: [{ some: 'thing' }],
};

/** String values by string keys. */
export const stringMap = typed(
  'an object',
  isPlainObject,
  { type: 'object', additionalProperties: { type: 'string' }, maxProperties: maxFields },
  { samples: [{ ticket: '7' }], wrong: 'ticket=7' },
  (value, path) => {
    const entries = Object.entries(value);
    const excess = tooManyFields(path, entries.length);
    if (excess !== null) return excess;
    const wrong = entries.find(([, item]) => typeof item !== 'string');
    return wrong === undefined ? null : invalidType(`${path}.${shorten(wrong[0])}`, 'a string', wrong[1]);
  },
);

/** An integer from `min` to `max`. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): ValueType {
  const json = { type: 'integer', minimum: min, ...(max < Number.MAX_SAFE_INTEGER ? { maximum: max } : {}) };
  const examples = { samples: [min + 1, min + 6], wrong: '1' };
  return typed('an integer', isInteger, json, examples, within('integer', min, max));
}

/** A number from `min` to `max`. */
export function number(min: number, max: number): ValueType {
  const json = { type: 'number', minimum: min, maximum: max };
  const examples = { samples: [(min + max) / 2 + 0.125], wrong: '1' };
  return typed('a number', isNumber, json, examples, within('decimal', min, max));
}

function within(kind: 'integer' | 'decimal', min: number, max: number): Check<number> {
  return (value, path) => {
    if (value < min) return outOfRange(`${kind}_below_min_value`, path, `>= ${min}`, value);
    return value > max ? outOfRange(`${kind}_above_max_value`, path, `<= ${max}`, value) : null;
  };
}

/** One of these strings. */
export function oneOf(...values: readonly [string, ...string[]]): ValueType {
  const json = { type: 'string', enum: values };
  return typed('a string', isString, json, { samples: values, wrong: 7 }, (value, path) =>
    values.includes(value) ? null : invalidValue(path, value, values),
  );
}

/** One of several types. The refusal names them all, or the fault in a value that has one of them. */
export function either(...types: readonly [ValueType, ...ValueType[]]): ValueType {
  const expected = types.map((type) => type.expected).join(' or ');
  return {
    expected,
    fits: (value) => types.some(({ fits }) => fits(value)),
    check(value, path) {
      for (const { fits, check } of types) if (fits(value)) return check(value, path);
      return invalidType(path, expected, value);
    },
    json: { anyOf: types.map(({ json }) => json) },
    samples: types.flatMap(({ samples }) => samples),
    ...(types.some(({ wrong }) => wrong === undefined) ? {} : { wrong: 7 }),
  };
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}
