import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';

/** How many entries one array of a request may have, and how many fields one object: each of them costs work. */
export const maxItems = 4_096;
export const maxFields = 512;

/** The refusal for a value of the wrong type. */
export function invalidType(path: string, expected: string, value: unknown): Refusal {
  return refuse(
    'invalid_type',
    `Invalid type for '${path}': expected ${expected}, but got ${nameType(value)} instead.`,
    { param: path },
  );
}

/** The refusal for a string outside the supported ones. */
export function invalidValue(path: string, value: string, supported: readonly string[]): Refusal {
  const listed = supported.map((name) => `'${name}'`);
  const last = listed.pop();
  const offered = listed.length < 2 ? [...listed, last].join(' and ') : `${listed.join(', ')}, and ${last}`;
  return refuse(
    'invalid_value',
    `Invalid value for '${path}': '${shorten(value)}'. Supported values are: ${offered}.`,
    { param: path },
  );
}

/** The refusal for an unsupported value; `advice` says what is offered instead. */
export function unsupportedValue(path: string, advice: string): Refusal {
  return refuse('unsupported_value', `Unsupported value: '${path}'. ${advice}`, { param: path });
}

/** The refusal for a missing required field. */
export function missingParameter(path: string): Refusal {
  return refuse('missing_required_parameter', `Missing required parameter: '${path}'.`, { param: path });
}

/** The refusal for an array that must not be empty. */
export function emptyArray(path: string): Refusal {
  return refuse(
    'empty_array',
    `Invalid '${path}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    { param: path },
  );
}

/** The refusal for an array with more entries than it may have; `null` if it has fewer. */
export function tooManyItems(path: string, count: number, most: number = maxItems): Refusal | null {
  if (count <= most) return null;
  return refuse(
    'invalid_value',
    `Invalid '${path}': array too long. Expected an array with maximum length ${most}, but got an array with length ${count} instead.`,
    { param: path },
  );
}

/** The refusal for a string of more than `most` characters. */
export function tooLong(path: string, most: number, length: number): Refusal {
  return refuse(
    'invalid_value',
    `Invalid '${path}': string too long. Expected a string with maximum length ${most}, but got a string with length ${length} instead.`,
    { param: path },
  );
}

/** The refusal for an object with too many fields. `prefix` is the path of its fields, empty for the body. */
export function tooManyFields(prefix: string, count: number): Refusal | null {
  if (count <= maxFields) return null;
  const path = prefix.replace(/\.$/, '');
  const what = path === '' ? 'the request body' : `'${path}'`;
  return refuse(
    'invalid_value',
    `Invalid value: ${what} has ${count} fields, and an object may have ${maxFields} at most.`,
    { param: path === '' ? null : path },
  );
}

/** A client-chosen name, shortened for an error message. */
export function shorten(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name;
}

/** The refusal for a number below or above what is possible. */
export function outOfRange(
  code: `${'integer' | 'decimal'}_${'below_min' | 'above_max'}_value`,
  path: string,
  expected: string,
  value: number,
): Refusal {
  const fault = code.replaceAll('_', ' ').replace('min', 'minimum').replace('max', 'maximum');
  return refuse(
    code,
    `Invalid '${path}': ${fault}. Expected a value ${expected}, but got ${value} instead.`,
    {
      param: path,
    },
  );
}

/** A JSON value's type with its article, for error messages. */
export function nameType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
