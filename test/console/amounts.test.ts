import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shortAmount } from '../../src/console/widgets/format.ts';
import { formatUsd } from '../../src/shared/money.ts';

describe('an amount in the console', () => {
  test.each([
    ['4.964085162', '$4.964'],
    ['0.000012345', '$0.00001235'],
    ['0.000000001', '$0.000000001'],
    ['-0.012345678', '−$0.01235'],
    ['12.345678', '$12.35'],
    ['1234567.895', '$1234567.90'],
    ['0.99996', '$1.00'],
    ['9.9996', '$10.00'],
    ['5.00', '$5.00'],
    ['0.00', '$0.00'],
    ['2.5', '$2.5'],
  ])('of %s is shown as %s', (usd, shown) => {
    expect(shortAmount(usd)).toBe(shown);
  });

  test('is never off by more than half of its last digit, which is a cent or less, and at most a two-thousandth', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e15, max: 1e15 }), (nanos) => {
        const usd = formatUsd(nanos);
        const off = Math.abs(Number(shortAmount(usd).replace('−', '-').replace('$', '')) - Number(usd));
        expect(off).toBeLessThanOrEqual(Math.min(0.005, Math.abs(Number(usd)) / 2_000) + 1e-9);
      }),
    );
  });
});
