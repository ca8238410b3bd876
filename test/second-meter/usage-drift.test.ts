import { describe, expect, test } from 'vitest';
import {
  UsageDrift,
  leastReferenceSamples,
  maxPairs,
  recentSamples,
  referenceSamples,
} from '../../src/second-meter/usage-drift.ts';
import { changeAt, changing, constant, firstAlarm } from '../simulation/drift.ts';
import { propertyRun } from '../support/property-run.ts';

/** Adds samples of one ratio. */
function add(drift: UsageDrift, samples: number, ratio: number, model = 'large'): void {
  for (let sample = 0; sample < samples; sample++) drift.add('far', model, 'output', 1_000 * ratio, 1_000);
}

const figureOf = (drift: UsageDrift) => drift.figures()[0];

describe('the figures of an upstream and a model', () => {
  test('begin with enough samples: first the ratio, then its change', () => {
    const drift = new UsageDrift();
    add(drift, recentSamples - 1, 1.3);
    expect(drift.figures()).toEqual([]);
    add(drift, 1, 1.3);
    expect(drift.figures()).toEqual([
      { upstream: 'far', model: 'large', kind: 'output', ratio: expect.closeTo(1.3) as number, drift: null },
    ]);
    add(drift, leastReferenceSamples - 1, 1.3);
    expect(figureOf(drift)?.drift).toBeNull();
    add(drift, 1, 1.3);
    expect(figureOf(drift)?.drift).toEqual({
      ratio: expect.closeTo(1) as number,
      uncertainty: expect.closeTo(0) as number,
    });
  });

  test('have the change against what was usual, which the new ratio becomes', () => {
    const drift = new UsageDrift();
    add(drift, referenceSamples + recentSamples, 1.3);
    add(drift, recentSamples, 1.3 * 1.1);
    expect(figureOf(drift)).toMatchObject({ ratio: expect.closeTo(1.43) as number });
    expect(figureOf(drift)?.drift?.ratio).toBeCloseTo(1.1);
    add(drift, referenceSamples, 1.3 * 1.1);
    expect(figureOf(drift)?.drift?.ratio).toBeCloseTo(1);
  });

  test('are not held against the samples that they are made of', () => {
    const drift = new UsageDrift();
    add(drift, recentSamples + leastReferenceSamples, 1.3);
    add(drift, recentSamples, 1.3 * 1.1);
    expect(figureOf(drift)?.drift?.ratio).toBeCloseTo(1.1);
  });

  test('are apart for input and output, and for each model', () => {
    const drift = new UsageDrift();
    add(drift, recentSamples, 1, 'small');
    add(drift, recentSamples, 2);
    for (let sample = 0; sample < recentSamples; sample++) drift.add('far', 'large', 'input', 3, 1);
    expect(drift.figures().map(({ model, kind, ratio }) => [model, kind, Math.round(ratio)])).toEqual([
      ['small', 'output', 1],
      ['large', 'input', 3],
      ['large', 'output', 2],
    ]);
  });

  test('stay finite if an upstream reports nothing', () => {
    const drift = new UsageDrift();
    add(drift, recentSamples + leastReferenceSamples, 0);
    expect(figureOf(drift)).toMatchObject({ ratio: expect.closeTo(1 / 64) as number, drift: { ratio: 1 } });
  });
});

test('of too many models the one that was not sampled for longest is forgotten', () => {
  const drift = new UsageDrift();
  add(drift, recentSamples, 1, 'first');
  add(drift, recentSamples, 1, 'second');
  for (let model = 0; model < maxPairs - 2; model++) add(drift, 1, 1, `model ${model}`);
  add(drift, 1, 1, 'first');
  add(drift, 1, 1, 'one more');
  expect(drift.figures().map(({ model }) => model)).toEqual(['first']);
});

/** Runs of each scenario: `npm run simulate drift` has a thousand. */
const runs = 1;

describe('an alarm', () => {
  const { seed } = propertyRun();

  test.each(constant.map((scenario) => [scenario.name, scenario] as const))(
    `never comes while the ratio stays the same: %s (seed ${seed})`,
    (_, scenario) => {
      const found = Array.from({ length: runs }, (__, run) => firstAlarm(scenario, seed + run));
      expect(found).toEqual(found.map(() => null));
    },
  );

  test.each(changing.map((scenario) => [scenario.name, scenario] as const))(
    `comes within 300 samples of a change: %s (seed ${seed})`,
    (_, scenario) => {
      for (let run = 0; run < runs; run++) {
        const found = firstAlarm(scenario, seed + run);
        expect(found).toBeGreaterThan(changeAt);
        expect(found).toBeLessThanOrEqual(changeAt + 300);
      }
    },
  );
});
