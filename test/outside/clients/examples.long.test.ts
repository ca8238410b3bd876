import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exampleScripts, isOutside, openExampleStage } from '../../support/example-scripts.ts';

const packages = join(import.meta.dirname, '..', 'node_modules');
const { expectToRun } = await openExampleStage();
const outside = exampleScripts.filter(([name]) => isOutside(name));

test('the page has examples of other client libraries', () => {
  expect(outside).toHaveLength(2);
});

test.each(outside)('the example %s runs as it stands', async (name, text) => {
  await expectToRun(process.execPath, name, text, packages);
});
