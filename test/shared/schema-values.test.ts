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

describe('the name of a key', () => {
  test.each([
    ['bob', undefined],
    ['first key', undefined],
    ['key_of_bob', undefined],
    ['  ', 'expected a name that can be seen'],
    ['\u202e\u200b', 'expected a name that can be seen'],
    ['key_a1B2c3D4e5F6', 'expected a name that is not in the form of an id'],
    ['a\u001bb', 'expected a name without control characters'],
    ['a\0b', 'expected a name without control characters'],
    ['😀', undefined],
    ['a\ud83d', 'expected a name of whole characters: it has half of a surrogate pair'],
    ['', 'expected a name that is not empty'],
  ])('%j is taken, or refused for what is wrong with it', (name, problem) => {
    expect(problemOf(keyName, name)).toBe(problem);
  });
});
