import { describe, expect, test } from 'vitest';
import { fitValue } from '../../../src/storage/move/sqlite-source.ts';
import type { CopiedColumn } from '../../../src/storage/move/table-plan.ts';

const column = (type: CopiedColumn['type'], isNullable = false): CopiedColumn => ({
  name: 'a',
  type,
  isNullable,
});
const fits = (text: string | null) => ({ kind: 'fits', text });
const unfit = (why: string) => ({ kind: 'unfit', why });

describe('a value of SQLite for PostgreSQL', () => {
  test.each([
    [column('bigint'), 9_223_372_036_854_775_807n, '9223372036854775807'],
    [column('bigint'), -9_223_372_036_854_775_808n, '-9223372036854775808'],
    [column('bigint'), 9_007_199_254_740_993n, '9007199254740993'],
    [column('integer'), -2_147_483_648n, '-2147483648'],
    [column('text'), '', ''],
    [column('text'), 'NULL', 'NULL'],
    [column('text', true), null, null],
    [column('integer', true), null, null],
  ])('%o takes %s', (into, value, text) => {
    expect(fitValue(value, into)).toEqual(fits(text));
  });

  test.each([
    [column('text'), null, 'is null, and needs a value'],
    [column('text'), 1n, 'is no text'],
    [column('text'), new Uint8Array([1]), 'is no text'],
    [column('text'), 'a\0b', "has the character U+0000, which PostgreSQL can't store"],
    [column('bigint'), 1.5, 'is no whole number'],
    [column('bigint'), '1', 'is no whole number'],
    [column('bigint'), 9_223_372_036_854_775_808n, "is too large for PostgreSQL's bigint"],
    [column('integer'), 2_147_483_648n, "is too large for PostgreSQL's integer"],
    [column('integer'), -2_147_483_649n, "is too large for PostgreSQL's integer"],
  ])('%o refuses %s', (into, value, why) => {
    expect(fitValue(value, into)).toEqual(unfit(why));
  });
});
