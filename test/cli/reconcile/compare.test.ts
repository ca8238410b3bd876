import { describe, expect, test } from 'vitest';
import { calendarOf } from '../../../src/cli/reconcile/calendar.ts';
import { OurUsageReader } from '../../../src/cli/reconcile/our-usage.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import {
  attemptOf,
  differencesIn,
  exportsOfBuckets,
  firstDay,
  firstMs,
  reconcileText,
  recordOf,
} from './scene.ts';
import type { Call } from './scene.ts';

const noonMs = firstMs + 12 * 3_600_000;
const call: Call = {
  beganMs: noonMs,
  durationMs: 1_000,
  model: 'large',
  input: 100,
  cached: 0,
  cacheWrite: 0,
  output: 50,
  countsAtEnd: false,
};
const bucket = {
  day: firstDay,
  model: 'large',
  requests: 1,
  input: 100,
  cached: 0,
  cacheWrite: 0,
  output: 50,
};

/** Reconciles one plain row with records. */
async function against(row: object, records: Parameters<typeof reconcileText>[2], tolerance = 0) {
  const text = exportsOfBuckets['plain']?.([{ ...bucket, ...row }]) ?? '';
  return differencesIn(await reconcileText(makeTemporaryFolder(), text, records, tolerance));
}

const record = recordOf(noonMs, [attemptOf(call, noonMs)]);

describe('the tolerance', () => {
  test.each([
    [0.1, 110, []],
    [0.1, 112, [`${firstDay} large: input`, 'all large: input']],
    [0.1, 90, []],
    [0.1, 89, [`${firstDay} large: input`, 'all large: input']],
    [0, 101, [`${firstDay} large: input`, 'all large: input']],
  ])('of %d of the larger side: %i input tokens for 100', async (tolerance, input, differences) => {
    expect(await against({ input }, [record], tolerance)).toEqual(differences);
  });
});

describe('attempts without usage', () => {
  const without = (result: 'truncated' | 'refused' | 'unreachable') =>
    recordOf(noonMs, [attemptOf(null, noonMs, { result })]);

  test.each(['truncated', 'refused'] as const)(
    'that ended as %s may be requests of the provider, or not',
    async (result) => {
      for (const requests of [1, 2])
        expect(await against({ requests }, [record, without(result)])).toEqual([]);
      expect(await against({ requests: 3 }, [record, without(result)])).toEqual([
        `${firstDay} large: requests`,
        'all large: requests',
      ]);
    },
  );

  test('that were never sent are none', async () => {
    expect(await against({ requests: 2 }, [record, without('unreachable')])).toHaveLength(2);
  });

  test('are counted apart from those that the provider refused', async () => {
    const { lines } = await reconcileText(
      makeTemporaryFolder(),
      exportsOfBuckets['plain']?.([bucket]) ?? '',
      [record, without('truncated'), without('refused')],
    );
    expect(lines[0]).toMatchObject({ agrees: true, withoutUsage: 1, refused: 1 });
  });
});

test('an attempt that lost to another one counts at its own upstream, and the charge with the answer', async () => {
  const attempts = [
    attemptOf(call, noonMs, { upstream: 'far', result: 'truncated' }),
    attemptOf(call, noonMs, { upstream: 'near' }),
  ];
  const { lines } = await reconcileText(makeTemporaryFolder(), exportsOfBuckets['plain']?.([bucket]) ?? '', [
    recordOf(noonMs, attempts, { charge: '0.25' }),
  ]);
  expect(lines[0]).toMatchObject({ agrees: true, side: 'both', chargedNanos: 0n });
});

test('the charge counts with the answer, not with a second attempt at the same upstream that was stopped', async () => {
  const attempts = [
    attemptOf(call, noonMs),
    attemptOf(null, noonMs, { model: 'other', started_ms: 10, result: 'hedge_lost' }),
  ];
  const { lines } = await reconcileText(makeTemporaryFolder(), exportsOfBuckets['plain']?.([bucket]) ?? '', [
    recordOf(noonMs, attempts, { charge: '0.25' }),
  ]);
  expect(lines[0]).toMatchObject({ agrees: true, side: 'both', chargedNanos: 250_000_000n });
});

test('a call over a midnight between two days has to be on one of them, and once', async () => {
  const beganMs = firstMs + 86_400_000 - 500;
  const crossing = recordOf(beganMs, [attemptOf({ ...call, beganMs }, beganMs)]);
  expect(await against({}, [record, crossing])).toEqual(['all large: requests input output']);
  const withIt = { ...bucket, requests: 2, input: 200, output: 100 };
  expect(await against(withIt, [record, crossing])).toEqual([]);
  const twice = exportsOfBuckets['plain']?.([withIt, { ...bucket, day: '2030-01-31' }]) ?? '';
  const found = await reconcileText(makeTemporaryFolder(), twice, [record, crossing]);
  expect(differencesIn(found)).toEqual(['all large: requests input output']);
});

describe('at the ends of the days', () => {
  const midnightMs = firstMs;
  const crossing = { ...call, beganMs: midnightMs - 500 };
  const before = recordOf(midnightMs - 500, [attemptOf(crossing, midnightMs - 500)]);

  test('a call that ran over the first midnight may be in the export, or not', async () => {
    expect(await against({}, [record, before])).toEqual([]);
    expect(await against({ requests: 2, input: 200, output: 100 }, [record, before])).toEqual([]);
    expect(await against({ requests: 3, input: 300, output: 150 }, [record, before])).toHaveLength(2);
  });

  test('a request that arrived earlier counts by the time of its attempt', async () => {
    const late = recordOf(midnightMs - 60_000, [attemptOf(call, midnightMs - 60_000)]);
    expect(await against({}, [late])).toEqual([]);
  });
});

test('requests that have no attempts to compare are counted apart', () => {
  const reader = new OurUsageReader('far', { from: firstDay, to: '2030-02-02' }, calendarOf('UTC'));
  const of = (more: object) => reader.add(recordOf(noonMs, [], { upstream: 'far', ...more }));
  of({ outcome: null });
  of({ outcome: 'lost' });
  of({ protocol: 'passthrough' });
  of({ protocol: 'passthrough', upstream: 'near' });
  of({ outcome: 'lost', created_at: '2030-01-29T23:59:59.999Z' });
  expect(reader.usage()).toMatchObject({ records: 5, running: 1, lost: 1, passedThrough: 1 });
});
