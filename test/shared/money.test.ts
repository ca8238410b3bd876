import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatUsd, maxNanos, parseUsd } from '../../src/shared/money.ts';
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
