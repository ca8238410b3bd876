import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { propertyRun } from '../../support/property-run.ts';
import {
  attemptOf,
  bucketsOf,
  days,
  differencesIn,
  exportOfCalls,
  exportsOfBuckets,
  firstMs,
  reconcileText,
  recordOf,
} from './scene.ts';
import type { Bucket, Call } from './scene.ts';

const dayMs = 86_400_000;

/** The first minute of a day is left out where calls must not run over midnight. */
const call = (mayCross: boolean): fc.Arbitrary<Call> =>
  fc
    .record({
      day: fc.nat({ max: days - 1 }),
      ofDayMs: fc.nat({ max: dayMs - 1 }),
      durationMs: fc.nat({ max: 90_000 }),
      model: fc.constantFrom('small', 'large', 'vendor/large "x", y'),
      input: fc.integer({ min: 1, max: 5_000 }),
      cachedShare: fc.constantFrom(0, 0, 0.5),
      writeShare: fc.constantFrom(0, 0, 0.3),
      output: fc.nat({ max: 900 }),
      countsAtEnd: fc.boolean(),
    })
    .map(({ day, ofDayMs, durationMs, cachedShare, writeShare, input, ...rest }) => {
      const last = day === days - 1 || !mayCross;
      const ofDay = last ? Math.min(ofDayMs, dayMs - durationMs - 1) : ofDayMs;
      const cached = Math.floor(input * cachedShare);
      const cacheWrite = Math.floor(input * writeShare);
      return Object.assign(rest, {
        input,
        cached,
        cacheWrite,
        durationMs,
        beganMs: firstMs + day * dayMs + ofDay,
      });
    });

/** Some calls near a midnight, so that most runs have some that run over it. */
const nearMidnight = call(true).map((each) =>
  Object.assign({}, each, { beganMs: firstMs + dayMs - 30_000, durationMs: 60_000 }),
);

const crossing = fc.array(fc.oneof({ arbitrary: call(true), weight: 4 }, nearMidnight), {
  minLength: 1,
  maxLength: 40,
});
const within = fc.array(call(false), { minLength: 1, maxLength: 40 });

/** Our records of the calls: some in pairs as attempts of one request, and others beside them that are not counted. */
function recordsOf(calls: readonly Call[]) {
  return calls.flatMap((each, index) => {
    const createdMs = each.beganMs - (index % 3) * 1_000;
    const attempts = [attemptOf(each, createdMs)];
    // A failed attempt at another upstream, whose usage is that one's.
    if (index % 4 === 0)
      attempts.unshift(attemptOf(each, createdMs, { upstream: 'near', result: 'truncated' }));
    if (index % 5 === 0)
      attempts.unshift(attemptOf(null, createdMs, { result: 'unreachable', model: each.model }));
    return [recordOf(createdMs, attempts)];
  });
}

const formats: readonly (readonly [string, (calls: readonly Call[]) => string])[] = [
  ...Object.entries(exportsOfBuckets).map(
    ([name, write]) => [name, (calls: readonly Call[]) => write(bucketsOf(calls))] as const,
  ),
  ['openrouter csv', exportOfCalls],
];

describe.each(formats)('an export in the form %s', (_, write) => {
  test('has no difference from records of the same calls, on whichever day a midnight lies', async () => {
    const folder = makeTemporaryFolder();
    await fc.assert(
      fc.asyncProperty(crossing, async (calls) => {
        expect(differencesIn(await reconcileText(folder, write(calls), recordsOf(calls)))).toEqual([]);
      }),
      propertyRun(25),
    );
  });

  test('differs by a call that it lacks, or has twice: the line and the model are named', async () => {
    const folder = makeTemporaryFolder();
    await fc.assert(
      fc.asyncProperty(within, fc.nat(), fc.boolean(), async (calls, at, isTwice) => {
        const changed = calls[at % calls.length];
        if (changed === undefined) throw new Error('there is no call');
        const others = calls.filter((each) => each !== changed);
        const theirs = isTwice ? [...calls, changed] : others;
        if (theirs.length === 0) return;
        const text = write(theirs);
        const found = differencesIn(await reconcileText(folder, text, recordsOf(calls)));
        const day = new Date(changed.beganMs).toISOString().slice(0, 10);
        expect(found.map((line) => line.replace(/: .*/, ''))).toEqual([
          `${day} ${changed.model}`,
          `all ${changed.model}`,
        ]);
        expect(found[0]).toContain('input');
      }),
      propertyRun(25),
    );
  });
});

describe.each(Object.entries(exportsOfBuckets))('a row of an export in the form %s', (_, write) => {
  test.each<[string, (buckets: readonly Bucket[], at: number) => readonly Bucket[]]>([
    [
      'changed',
      (buckets, at) => buckets.map((each, i) => (i === at ? { ...each, output: each.output + 1 } : each)),
    ],
    ['dropped', (buckets, at) => buckets.filter((__, i) => i !== at)],
    ['duplicated', (buckets, at) => [...buckets, ...buckets.slice(at, at + 1)]],
  ])('that is %s is named, and nothing else', async (__, change) => {
    const folder = makeTemporaryFolder();
    await fc.assert(
      fc.asyncProperty(within, fc.nat(), async (calls, index) => {
        const buckets = bucketsOf(calls);
        const at = index % buckets.length;
        const changed = change(buckets, at);
        if (changed.length === 0) return;
        const { lines } = await reconcileText(folder, write(changed), recordsOf(calls));
        const differing = lines.filter(({ agrees }) => !agrees);
        expect(differing.map(({ day, model }) => [day, model])).toEqual([
          [buckets[at]?.day, buckets[at]?.model],
          [null, buckets[at]?.model],
        ]);
      }),
      propertyRun(10),
    );
  });
});
