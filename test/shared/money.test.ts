import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatUsd, maxNanos, parseUsd, plainDecimal } from '../../src/shared/money.ts';
import { propertyRun } from '../support/property-run.ts';

describe('an amount', () => {
  test.each<[string, number]>([
    ['0', 0],
    ['5', 5_000_000_000],
    ['5.00', 5_000_000_000],
    ['0.15', 150_000_000],
    ['0.000000001', 1],
    ['9007199.254740991', maxNanos],
  ])('%s is %i nano-USD', (text, nanos) => {
    expect(parseUsd(text)).toBe(nanos);
  });

  test.each([
    '',
    '-1',
    '+1',
    '1e3',
    '.5',
    '5.',
    '1,5',
    ' 1',
    '0x10',
    '0.0000000001',
    '9007199.254740992',
    '9'.repeat(17),
    'NaN',
  ])('is not parsed from %j', (text) => {
    expect(parseUsd(text)).toBeNull();
  });

  test.each<[number, string]>([
    [0, '0.00'],
    [1, '0.000000001'],
    [-1, '-0.000000001'],
    [1_500_000_000, '1.50'],
    [123_456_789_012, '123.456789012'],
    [maxNanos, '9007199.254740991'],
  ])('of %i nano-USD is written as %s', (nanos, text) => {
    expect(formatUsd(nanos)).toBe(text);
  });

  test('is the same after writing and parsing it', () => {
    fc.assert(
      fc.property(fc.nat({ max: maxNanos }), (nanos) => {
        expect(parseUsd(formatUsd(nanos))).toBe(nanos);
      }),
      propertyRun(1_000),
    );
  });
});

describe('a number’s text', () => {
  test.each([
    ['1e-7', '0.0000001'],
    ['.15', '0.15'],
    ['5.', '5'],
    ['+0.1500', '0.15'],
    ['1.5E+3', '1500'],
    ['00.15', '0.15'],
    ['0', '0'],
    ['120', '120'],
  ])('%s is %s as a plain decimal', (text, decimal) => {
    expect(plainDecimal(text)).toBe(decimal);
  });

  test.each(['', '.', 'e5', '-1', '0x10', '.inf', '1_000', '1e31', '1e-999'])(
    '%j is left as it is',
    (text) => {
      expect(plainDecimal(text)).toBe(text);
    },
  );

  test('has the value of the number', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true, max: 1e12 }), (number) => {
        expect(Number(plainDecimal(String(number)))).toBe(number);
      }),
      propertyRun(),
    );
  });
});
