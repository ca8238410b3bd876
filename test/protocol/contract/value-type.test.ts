import { describe, expect, test } from 'vitest';
import { registeredName } from '../../../src/protocol/contract/registry.ts';
import {
  anything,
  array,
  arrayOf,
  boolean,
  either,
  integer,
  number,
  object,
  oneOf,
  string,
  stringMap,
} from '../../../src/protocol/contract/value-type.ts';
import type { ValueType } from '../../../src/protocol/contract/value-type.ts';

const fault = ({ check }: ValueType, value: unknown) => {
  const refusal = check(value, 'at');
  return refusal === null ? null : `${refusal.code}: ${refusal.message}`;
};

describe('the check of a value type', () => {
  test.each<[string, ValueType, unknown, string | null]>([
    [
      'a fraction as an integer',
      integer(1),
      1.5,
      "invalid_type: Invalid type for 'at': expected an integer, but got a decimal instead.",
    ],
    ['null', string, null, "invalid_type: Invalid type for 'at': expected a string, but got null instead."],
    [
      'an object as a string',
      string,
      {},
      "invalid_type: Invalid type for 'at': expected a string, but got an object instead.",
    ],
    [
      'an array as a string',
      string,
      [],
      "invalid_type: Invalid type for 'at': expected a string, but got an array instead.",
    ],
    [
      'true as a string',
      string,
      true,
      "invalid_type: Invalid type for 'at': expected a string, but got a boolean instead.",
    ],
    [
      'a fraction as a string',
      string,
      0.5,
      "invalid_type: Invalid type for 'at': expected a string, but got a decimal instead.",
    ],
    [
      'text as an integer',
      integer(1),
      '1',
      "invalid_type: Invalid type for 'at': expected an integer, but got a string instead.",
    ],
    [
      'an integer below its minimum',
      integer(1),
      -1,
      "integer_below_min_value: Invalid 'at': integer below minimum value. Expected a value >= 1, but got -1 instead.",
    ],
    [
      'an integer above its maximum',
      integer(1, 128),
      129,
      "integer_above_max_value: Invalid 'at': integer above maximum value. Expected a value <= 128, but got 129 instead.",
    ],
    [
      'an integer beyond exact representation',
      integer(1),
      9_007_199_254_740_992,
      "integer_above_max_value: Invalid 'at': integer above maximum value. Expected a value <= 9007199254740991, but got 9007199254740992 instead.",
    ],
    [
      'a decimal below its minimum',
      number(0, 2),
      -0.1,
      "decimal_below_min_value: Invalid 'at': decimal below minimum value. Expected a value >= 0, but got -0.1 instead.",
    ],
    [
      'a decimal above its maximum',
      number(0, 2),
      2.1,
      "decimal_above_max_value: Invalid 'at': decimal above maximum value. Expected a value <= 2, but got 2.1 instead.",
    ],
    [
      'a value outside a list',
      oneOf('low', 'medium', 'high'),
      'huge',
      "invalid_value: Invalid value for 'at': 'huge'. Supported values are: 'low', 'medium', and 'high'.",
    ],
    ['a value of the second type', either(string, integer(1)), 3, null],
    [
      'a value of neither type',
      either(string, arrayOf('messages')),
      5,
      "invalid_type: Invalid type for 'at': expected a string or an array of messages, but got an integer instead.",
    ],
    [
      'a fault in a value of the second type',
      either(string, integer(1)),
      0,
      "integer_below_min_value: Invalid 'at': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    ],
    [
      'a fault inside a value of the first type',
      either(stringMap, string),
      { a: 1 },
      "invalid_type: Invalid type for 'at.a': expected a string, but got an integer instead.",
    ],
    [
      'a map with a number',
      stringMap,
      { a: 'x', b: 1 },
      "invalid_type: Invalid type for 'at.b': expected a string, but got an integer instead.",
    ],
    ['a number within its limits', number(0, 2), 2, null],
  ])('judges %s', (_name, type, value, expected) => {
    expect(fault(type, value)).toBe(expected);
  });
});

describe('a value type', () => {
  // Tests of the whole contract are made from these.
  test.each<[string, ValueType]>([
    ['a string', string],
    ['a boolean', boolean],
    ['an array', array],
    ['an array of messages', arrayOf('messages')],
    ['an object', object],
    ['anything', anything],
    ['a map of strings', stringMap],
    ['an integer', integer(1)],
    ['an integer of a short range', integer(0, 6)],
    ['a number', number(0, 2)],
    ['one of two strings', oneOf('low', 'high')],
    ['a string or a map', either(string, stringMap)],
    ['a string or anything', either(string, anything)],
  ])('that is %s accepts its samples, and refuses its wrong value, if it has one', (_name, type) => {
    expect(type.samples.length).toBeGreaterThan(0);
    for (const sample of type.samples) expect([fault(type, sample), type.fits(sample)]).toEqual([null, true]);
    if (type.wrong === undefined) return;
    expect([fault(type, type.wrong), type.fits(type.wrong)]).toEqual([
      expect.stringMatching(/^invalid_(?:type|value): .*at/),
      false,
    ]);
  });

  test('has a wrong value unless it accepts anything', () => {
    const kinds = [string, either(string, object), anything, either(string, anything)];
    expect(kinds.map((type) => 'wrong' in type)).toEqual([true, true, false, false]);
  });
});

describe('the registered name', () => {
  test.each([
    ['temperature', 'temperature'],
    ['messages[3].content[0].type', 'messages[].content[].type'],
    ['messages[3].content[0].custom', 'messages[].content'],
    ['messages[3].tool_calls', 'messages[].tool_calls'],
    ['messages[12]', 'messages'],
    ['input[0]', 'input'],
    ['response_format.type', 'response_format.type'],
    ['response_format.custom', 'response_format'],
    ['metadata.secret-customer', 'metadata'],
    ['frobnicate', 'other'],
    ['frobnicate.messages', 'other'],
    ['', 'other'],
    ['[[[[', 'other'],
  ])('of %s is %s', (path, name) => {
    expect(registeredName(path)).toBe(name);
  });
});
