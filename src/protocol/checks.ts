import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** Tests one value found at `path` (such as `messages[3].content`); `null` means it passed. */
export type Check = (value: unknown, path: string) => Refusal | null;

export const isString: Check = (value, path) =>
  typeof value === 'string' ? null : invalidType(path, 'a string', value);

export const isBoolean: Check = (value, path) =>
  typeof value === 'boolean' ? null : invalidType(path, 'a boolean', value);

export const isArray: Check = (value, path) =>
  Array.isArray(value) ? null : invalidType(path, 'an array', value);

export const isObject: Check = (value, path) =>
  isPlainObject(value) ? null : invalidType(path, 'an object', value);

/** Any value: for parameters that are refused or dropped whatever they hold. */
export const isAnything: Check = () => null;

export function isIntegerFrom(min: number): Check {
  return (value, path) => {
    if (!Number.isInteger(value)) return invalidType(path, 'an integer', value);
    if ((value as number) >= min) return null;
    return outOfRange('integer_below_min_value', path, 'integer below minimum value', `>= ${min}`, value);
  };
}

export function isNumberBetween(min: number, max: number): Check {
  return (value, path) => {
    if (typeof value !== 'number') return invalidType(path, 'a number', value);
    if (value < min)
      return outOfRange('decimal_below_min_value', path, 'decimal below minimum value', `>= ${min}`, value);
    if (value > max)
      return outOfRange('decimal_above_max_value', path, 'decimal above maximum value', `<= ${max}`, value);
    return null;
  };
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function invalidType(path: string, expected: string, value: unknown): Refusal {
  return refuse(
    'invalid_type',
    `Invalid type for '${path}': expected ${expected}, but got ${describe(value)} instead.`,
    { param: path },
  );
}

export function missingParameter(path: string): Refusal {
  return refuse('missing_required_parameter', `Missing required parameter: '${path}'.`, { param: path });
}

export function emptyArray(path: string): Refusal {
  return refuse(
    'empty_array',
    `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    { param: path },
  );
}

/** A name that the service does not have; `advice` says what it offers instead. */
export function unsupportedParameter(path: string, advice: string): Refusal {
  return refuse('unsupported_parameter', `Unsupported parameter: '${path}'. ${advice}`, { param: path });
}

/** A value that the service does not have; `advice` says what it offers instead. */
export function unsupportedValue(path: string, advice: string): Refusal {
  return refuse('unsupported_value', `Unsupported value: '${path}'. ${advice}`, { param: path });
}

function outOfRange(
  code: 'integer_below_min_value' | 'decimal_below_min_value' | 'decimal_above_max_value',
  path: string,
  fault: string,
  expected: string,
  value: unknown,
): Refusal {
  return refuse(
    code,
    `Invalid '${path}': ${fault}. Expected a value ${expected}, but got ${String(value)} instead.`,
    { param: path },
  );
}

/** Names a JSON value's type with its article, as the error messages want it. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
