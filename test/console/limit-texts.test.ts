import { describe, expect, test } from 'vitest';
import { usageOf } from '../../src/console/views/upstreams/limit-texts.ts';
import { formatWait } from '../../src/console/widgets/format.ts';

const limiter = {
  in_flight: 3,
  max_in_flight: null,
  starts_left: null,
  tokens_left: null,
  learned: [],
  learned_in_flight: null,
  paused_ms: 0,
  waiting: 0,
  expected_wait_ms: 0,
};

describe('the limits of an upstream on one line', () => {
  test('are those that its answers report, where the config has none', () => {
    const learned = [{ name: 'requests' as const, limit: 60, left: 22 }];
    expect(usageOf({ ...limiter, learned })).toBe('22 of 60 requests left, as its answers say');
  });

  test('are named one by one, with how many wait', () => {
    expect(usageOf({ ...limiter, max_in_flight: 4, starts_left: 9, waiting: 1_200 })).toBe(
      '3 of 4 requests at a time; 9 starts left in this minute; 1,200 waiting',
    );
  });

  test('say how many models have limits of their own', () => {
    const limited = { ...limiter, model: 'tiny' };
    expect(usageOf({ ...limiter, max_in_flight: 4, models: [limited] })).toBe(
      '3 of 4 requests at a time; one model has limits of its own',
    );
    expect(usageOf({ ...limiter, waiting: 1, models: [limited, limited] })).toBe(
      '2 models have limits of their own; 1 waiting',
    );
  });

  test('are not known before the first answer has reported one', () => {
    expect(usageOf(limiter)).toBe('none reached or learned yet');
  });
});

test.each([
  [0, '1 s'],
  [884, '1 s'],
  [13_150, '13 s'],
  [119_400, '119 s'],
  [130_000, '2 min'],
])('an expected wait of %d ms is written as %s: an estimate has no fractions', (milliseconds, written) => {
  expect(formatWait(milliseconds)).toBe(written);
});
