import { describe, expect, test } from 'vitest';
import { defaultCompatibility } from '../../../src/protocol/contract/compatibility.ts';
import type { Compatibility } from '../../../src/protocol/contract/compatibility.ts';
import { objectReader, StrippedNames } from '../../../src/protocol/contract/read-fields.ts';
import type { FieldSet } from '../../../src/protocol/contract/read-fields.ts';
import {
  echo,
  forward,
  keepOnly,
  misplaced,
  onlyNeutral,
  refused,
  refusedUnless,
  required,
  rules,
  strip,
} from '../../../src/protocol/contract/rule.ts';
import { number, string, stringMap } from '../../../src/protocol/contract/value-type.ts';
import { isRefusal } from '../../../src/shared/errors.ts';

/** A set with a field of every policy, as a table of the contract makes it; this test reads it from its source on. */
const table: Omit<FieldSet, 'unknown'> = {
  prefix: 'made.',
  rules: rules(
    ['needed', string, required, ''],
    ['wanted', string, forward, ''],
    ['dropped', string, strip, ''],
    ['keepsake', string, keepOnly, ''],
    ['repeated', string, echo, ''],
    ['chance', number(0, 2), { kind: 'sampling', defaults: [1] }, ''],
    ['shape', stringMap, refusedUnless([{ kind: 'text', tone: 'flat' }], 'It is not offered.'), ''],
    ['lone', string, onlyNeutral(['plain'], 'It is plain.'), ''],
    ['banished', string, refused('It is not offered.'), ''],
    ['elsewhere', string, misplaced('It belongs elsewhere.'), ''],
    ['top', string, forward, ''],
  ),
};

/** What is read of an object that has `needed`, unless it says otherwise. */
function read(
  fields: object,
  settings: Partial<Compatibility> = {},
  unknown: FieldSet['unknown'] = 'policy',
): unknown {
  const stripped = new StrippedNames();
  const context = { compatibility: { ...defaultCompatibility, ...settings }, stripped };
  const body = { needed: 'yes', ...fields };
  const values = objectReader({ ...table, unknown })(body, 'at.', context);
  if (isRefusal(values)) return `${values.code}: ${values.message}`;
  const { needed, ...others } = values;
  expect(needed).toBe('yes');
  return { values: others, stripped: stripped.list() };
}

describe('a field of an object', () => {
  test.each<[string, object, object]>([
    ['that is used', { wanted: 'a', top: 'b' }, { values: { wanted: 'a', top: 'b' }, stripped: [] }],
    ['that is dropped', { dropped: 'a' }, { values: {}, stripped: ['made.dropped'] }],
    [
      'that is dropped and used here',
      { keepsake: 'a' },
      { values: { keepsake: 'a' }, stripped: ['made.keepsake'] },
    ],
    [
      'that is dropped and repeated',
      { repeated: 'a' },
      { values: { repeated: 'a' }, stripped: ['made.repeated'] },
    ],
    ['that samples', { chance: 0.5 }, { values: {}, stripped: ['made.chance'] }],
    ['with a neutral value', { lone: 'plain' }, { values: {}, stripped: ['made.lone'] }],
    [
      'whose neutral value has another order of keys',
      { shape: { tone: 'flat', kind: 'text' } },
      { values: {}, stripped: ['made.shape'] },
    ],
    ['that is null', { wanted: null, banished: null, unheard: null }, { values: {}, stripped: [] }],
  ])('%s is read: %j', (_what, fields, expected) => {
    expect(read(fields)).toEqual(expected);
  });

  test.each<[string, object, string]>([
    [
      'that is needed and missing',
      { needed: undefined },
      "missing_required_parameter: Missing required parameter: 'at.needed'.",
    ],
    [
      'that is needed and null',
      { needed: null },
      "invalid_type: Invalid type for 'at.needed': expected a string, but got null instead.",
    ],
    [
      'of the wrong type, although it is dropped',
      { dropped: 7 },
      "invalid_type: Invalid type for 'at.dropped': expected a string, but got an integer instead.",
    ],
    [
      'that differs from its neutral value in one key',
      { shape: { kind: 'text', tone: 'high' } },
      "unsupported_parameter: Unsupported parameter: 'at.shape'. It is not offered. Leave this parameter out.",
    ],
    [
      'that has a key more than its neutral value',
      { shape: { kind: 'text', tone: 'flat', more: 'x' } },
      "unsupported_parameter: Unsupported parameter: 'at.shape'. It is not offered. Leave this parameter out.",
    ],
    [
      'with a value that is not offered',
      { lone: 'other' },
      "unsupported_value: Unsupported value: 'at.lone'. It is plain.",
    ],
    [
      'that belongs elsewhere',
      { elsewhere: 'x' },
      "unknown_parameter: Unknown parameter: 'at.elsewhere'. It belongs elsewhere.",
    ],
  ])('%s is refused: %j', (_what, fields, expected) => {
    expect(read(fields)).toBe(expected);
  });

  test('that samples is refused in strict mode, unless it has a usual default', () => {
    expect(read({ chance: 1 }, { sampling: 'strict' })).toEqual({ values: {}, stripped: ['made.chance'] });
    expect(read({ chance: 0.5 }, { sampling: 'strict' })).toMatch(
      /^unsupported_value: .*does not support 0\.5/,
    );
  });
});

describe('an unknown field', () => {
  test.each([
    ['like one that is used', 'wantd', "Did you mean 'at.wanted'?"],
    ['like one that is dropped', 'droped', "Did you mean 'at.dropped'?"],
    ['like one with a neutral value', 'shpe', "Did you mean 'at.shape'?"],
    ['like one of four letters', 'lonne', "Did you mean 'at.lone'?"],
    ['like one of three letters, as almost any word is', 'topp', 'Remove it from the request.'],
    ['like one that is always refused', 'banishd', 'Remove it from the request.'],
    ['like one that belongs elsewhere', 'elsewher', 'Remove it from the request.'],
    ['like none', 'xxxxxxxx', 'Remove it from the request.'],
  ])('%s is refused with advice: %s', (_what, name, advice) => {
    expect(read({ [name]: 1 })).toBe(`unknown_parameter: Unknown parameter: 'at.${name}'. ${advice}`);
  });

  test('is dropped and named where the service or the object takes any', () => {
    const expected = { values: {}, stripped: ['made.unheard'] };
    expect(read({ unheard: 1 }, { unknownFields: 'ignore' })).toEqual(expected);
    expect(read({ unheard: 1 }, {}, 'strip')).toEqual(expected);
  });

  test('is named up to the 32nd, and with an ordinary name only', () => {
    const names = Array.from({ length: 34 }, (_, index) => `field${index}`);
    expect(read(Object.fromEntries(names.map((name) => [name, 1])), {}, 'strip')).toEqual({
      values: {},
      stripped: [...names.slice(0, 32).map((name) => `made.${name}`), 'other'],
    });
    expect(read({ 'a b': 1, ['x'.repeat(64)]: 1, ['y'.repeat(65)]: 1 }, {}, 'strip')).toEqual({
      values: {},
      stripped: ['made.other', `made.${'x'.repeat(64)}`],
    });
  });
});
