import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { keyName, usd } from '../../src/shared/schema-values.ts';

const problemOf = (schema: z.ZodType, text: string): string | undefined =>
  schema.safeParse(text).error?.issues[0]?.message;

describe('an amount in USD', () => {
  test.each([
    ['0.15', undefined],
    ['9007199.254740991', undefined],
    ['9007199.254740992', 'expected at most 9007199 USD'],
    ['99999999999999', 'expected at most 9007199 USD'],
    ['99999999999999999999', 'expected at most 9007199 USD'],
    [
      '0.1234567891',
      'expected USD as a decimal number with at most 9 digits after the point, such as "0.15"',
    ],
    ['-1', 'expected USD as a decimal number with at most 9 digits after the point, such as "0.15"'],
  ])('%s is read, or refused for what is wrong with it', (text, problem) => {
    expect(problemOf(usd, text)).toBe(problem);
  });
});

const marks = 'expected a name without control characters, direction marks and zero-width characters';
const blanks = 'expected a name without blanks at its ends: leave them out';

describe('the name of a key', () => {
  test.each([
    ['bob', undefined],
    ['first key', undefined],
    ['key_of_bob', undefined],
    ['أحمد', undefined],
    ['  ', blanks],
    ['bob ', blanks],
    ['\u00a0bob', blanks],
    ['\u202eevil2', marks],
    ['bob\u200b', marks],
    ['b\u2028ob', marks],
    ['key_a1B2c3D4e5F6', 'expected a name that is not in the form of an id'],
    ['a\u001bb', marks],
    ['a\0b', marks],
    ['😀', undefined],
    ['a\ud83d', 'expected a name of whole characters: it has half of a surrogate pair'],
    ['', 'expected a name that is not empty'],
  ])('%j is taken, or refused for what is wrong with it', (name, problem) => {
    expect(problemOf(keyName, name)).toBe(problem);
  });
});
