import { describe, expect, test } from 'vitest';
import { formatDuration, formatResetDuration, parseDuration } from '../../src/shared/duration.ts';

describe('a duration', () => {
  test.each([
    ['0ms', 0],
    ['250ms', 250],
    ['5s', 5_000],
    ['1.5s', 1_500],
    ['10m', 600_000],
    ['1h', 3_600_000],
    ['2d', 172_800_000],
    [' 5s ', 5_000],
  ])('%j is %i ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  test.each(['', '5', 's', '-5s', '+5s', '5 s', '5S', '5sec', '5s5s', '1e3s', '.5s', '5.s', '0x5s', '5w'])(
    '%j is none',
    (text) => {
      expect(parseDuration(text)).toBeNull();
    },
  );
});

describe('the time until a limit is reset', () => {
  test.each([
    [0, '0ms'],
    [0.2, '1ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_001, '2s'],
    [59_000, '59s'],
    [59_001, '1m0s'],
    [60_000, '1m0s'],
    [61_000, '1m1s'],
    [360_000, '6m0s'],
    [3_600_000, '60m0s'],
  ])('%d ms is written as %s, rounded up so that no client retries too early', (durationMs, written) => {
    expect(formatResetDuration(durationMs)).toBe(written);
  });
});

test.each([
  [0, '0s'],
  [1, '1ms'],
  [1_500, '1500ms'],
  [25_000, '25s'],
  [90_000, '90s'],
  [600_000, '10m'],
  [7_200_000, '2h'],
  [172_800_000, '2d'],
])('%d ms is written as %s in a config', (durationMs, written) => {
  expect(formatDuration(durationMs)).toBe(written);
  expect(parseDuration(written)).toBe(durationMs);
});
