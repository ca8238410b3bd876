import { expect, test } from 'vitest';
import { propertyRun } from '../../support/property-run.ts';
import { drawPolicies } from './draw.ts';
import { meansOf, reportAnnounced, reportConfigured, reportFairness, reportLearned } from './report.ts';

test('a greedy key does not make others wait for much longer than equal keys would', async () => {
  const { lines, faults } = await reportFairness(1, 10);
  expect(faults).toEqual([]);
  expect(lines).toHaveLength(5);
});

test('limits that are only learned from answers are used, and hardly any call is refused', async () => {
  expect((await reportLearned(1, 1, 3)).faults).toEqual([]);
});

test('upstreams never count more than their configured limits', async () => {
  const { seed } = propertyRun();
  expect({ seed, ...(await reportConfigured(seed, 1_000)) }).toMatchObject({ seed, faults: [] });
});

test('announced waits are close to those that follow', async () => {
  expect((await reportAnnounced(1, 1)).faults).toEqual([]);
});

test('the picture of policies shows what each of them does', async () => {
  const picture = drawPolicies(
    new Map([
      ['fair', await meansOf(1, 2, 'spread', 'fair')],
      ['age', await meansOf(1, 2, 'spread', 'age')],
      ['none', await meansOf(1, 2, 'spread', 'none')],
    ]),
  );
  expect(picture.match(/<rect/g)).toHaveLength(13);
  expect(picture).not.toMatch(/NaN|Infinity/);
});
