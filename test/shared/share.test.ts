import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatShare, parseShare } from '../../src/shared/share.ts';

test.each([
  ['5%', 0.05],
  ['0.05', 0.05],
  ['.5', 0.5],
  ['0.07%', 0.0007],
  ['100%', 1],
  ['1', 1],
  ['0', 0],
  [' 12.5% ', 0.125],
  ['1e-7', 1e-7],
  ['5', null],
  ['1.01', null],
  ['101%', null],
  ['-1%', null],
  ['5 %', null],
  ['5%%', null],
  ['0,05', null],
  ['NaN', null],
  ['', null],
])('the share %s is read as %s', (text, share) => {
  expect(parseShare(text)).toBe(share);
});

test('a share is written as the percentage from which it is read', () => {
  expect([0, 0.05, 0.0025, 1, 1e-7].map(formatShare)).toEqual(['0%', '5%', '0.25%', '100%', '0.00001%']);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (share) => {
      expect(parseShare(formatShare(share))).toBe(share);
      expect(parseShare(String(share))).toBe(share);
    }),
  );
});
