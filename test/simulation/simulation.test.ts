import { expect, test } from 'vitest';
import { propertyRun } from '../support/property-run.ts';
import { addCounts, noCounts } from './counts.ts';
import { runHistory } from './run-history.ts';

test('no history of several gateways over one database breaks a rule', async () => {
  const { seed, numRuns } = propertyRun(300);
  const counts = noCounts();
  const broken: string[] = [];
  for (let number = 0; number < numRuns; number++) {
    const result = await runHistory(seed + number);
    if (result.violation !== null) broken.push(`seed ${result.seed}: ${String(result.violation)}`);
    addCounts(counts, result.counts);
  }
  process.stdout.write(`simulation: ${numRuns} histories (seed ${seed}), violations: ${broken.length}\n`);
  expect(broken).toEqual([]);
  // What never happens is not tested.
  const {
    'checks that all of an ended process was free in time': _rare,
    'slots restored of running requests': _asRare,
    ...usual
  } = counts;
  expect(Object.entries(usual).filter(([, count]) => count === 0)).toEqual([]);
});

test('the same seed makes the same history, whether it is logged or not', async () => {
  const { seed } = propertyRun();
  const [first, second, unlogged] = [
    await runHistory(seed, true),
    await runHistory(seed, true),
    await runHistory(seed),
  ];
  expect(first.log.length).toBeGreaterThan(10);
  expect(second).toEqual(first);
  expect(unlogged.counts).toEqual(first.counts);
});
