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
type Check = (value: unknown, path: string) => Refusal | null;

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

export const string = typed('a string', isString, { type: 'string' }, ['text'], 7);
export const boolean = typed(
  'a boolean',
  (value) => typeof value === 'boolean',
  { type: 'boolean' },
  [true, false],
  'true',
);
export const array = typed('an array', Array.isArray, { type: 'array' }, [[{}]], {});
export const object = typed('an object', isPlainObject, { type: 'object' }, [{ some: 'thing' }], []);

/** An array whose entries are checked by its reader; `items` names them in the refusal, and `json` says more of them. */
export function arrayOf(items: string, json: ValueType['json'] = {}): ValueType {
  return typed(`an array of ${items}`, Array.isArray, { type: 'array', ...json }, [[{}]], {});
}

function typed(
  expected: string,
  fits: (value: unknown) => boolean,
  json: Readonly<Record<string, unknown>>,
  samples: readonly unknown[],
  wrong: unknown,
): ValueType {
  const check: Check = (value, path) => (fits(value) ? null : invalidType(path, expected, value));
  return { expected, fits, check, json, samples, wrong };
}

/** For fields whose policy does not depend on their value. */
export const anything: ValueType = {
  expected: 'any value',
  fits: () => true,
  check: () => null,
  json: {},
  samples: [{ some: 'thing' }],
};

/** String values by string keys, at most 16 of them. */
export const stringMap: ValueType = {
  expected: 'an object',
  fits: isPlainObject,
  check(value, path) {
    if (!isPlainObject(value)) return invalidType(path, 'an object', value);
    const entries = Object.entries(value);
    const wrong = entries.find(([, item]) => typeof item !== 'string');
    const excess = tooManyFields(path, entries.length);
    if (excess !== null) return excess;
    return wrong === undefined ? null : invalidType(`${path}.${shorten(wrong[0])}`, 'a string', wrong[1]);
  },
  json: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: maxFields },
  samples: [{ ticket: '7' }],
  wrong: 'ticket=7',
};

/** An integer from `min` to `max`. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): ValueType {
  return {
    expected: 'an integer',
    fits: isInteger,
    check(value, path) {
      if (!isInteger(value)) return invalidType(path, 'an integer', value);
      if (value < min) return outOfRange('integer_below_min_value', path, `>= ${min}`, value);
      return value > max ? outOfRange('integer_above_max_value', path, `<= ${max}`, value) : null;
    },
    json: { type: 'integer', minimum: min, ...(max < Number.MAX_SAFE_INTEGER ? { maximum: max } : {}) },
    samples: [min + 1, min + 6],
    wrong: '1',
  };
}

/** A number from `min` to `max`. */
export function number(min: number, max: number): ValueType {
  return {
    expected: 'a number',
    fits: isNumber,
    check(value, path) {
      if (!isNumber(value)) return invalidType(path, 'a number', value);
      if (value < min) return outOfRange('decimal_below_min_value', path, `>= ${min}`, value);
      return value > max ? outOfRange('decimal_above_max_value', path, `<= ${max}`, value) : null;
    },
    json: { type: 'number', minimum: min, maximum: max },
    samples: [(min + max) / 2 + 0.125],
    wrong: '1',
  };
}

/** One of these strings. */
export function oneOf(...values: readonly [string, ...string[]]): ValueType {
  return {
    expected: 'a string',
    fits: isString,
    check(value, path) {
      if (!isString(value)) return invalidType(path, 'a string', value);
      return values.includes(value) ? null : invalidValue(path, value, values);
    },
    json: { type: 'string', enum: values },
    samples: values,
    wrong: 7,
  };
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
