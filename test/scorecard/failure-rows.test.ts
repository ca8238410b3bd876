import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'contributors', 'scorecard.md'), 'utf8');

/** A row of the table of failures: its number, and what shows what happens. */
const rows = [...page.matchAll(/^\| (\d+) \|.*\| ([^|]+) \|$/gm)].map(
  ([, number, evidence = '']) => [Number(number), evidence] as const,
);

const from = (first: number, last: number): readonly number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

test('the table of failures has each row once, in order', () => {
  expect(rows.map(([number]) => number)).toEqual([...from(1, 27), ...from(51, 60), ...from(66, 74)]);
});

test.each(rows)(
  'row %i names tests that exist, by their names, and sections of the scorecard',
  (_, evidence) => {
    const tests = [...evidence.matchAll(/`(test\/\S+\.ts)`((?:: “[^”]+”)*)/g)];
    for (const [, path = '', quoted = ''] of tests) {
      const text = readFileSync(join(root, path), 'utf8');
      const names = [...quoted.matchAll(/“([^”]+)”/g)].map(([, name]) => name);
      expect(names.filter((name) => !text.includes(name ?? ''))).toEqual([]);
    }
    const sections = [...evidence.matchAll(/`npm run scorecard -- ([a-z]+)`/g)].map(([, name]) => name);
    const missing = sections.filter(
      (name) => !existsSync(join(root, 'test', 'scorecard', 'sections', `${name}.ts`)),
    );
    expect(missing).toEqual([]);
    expect(tests.length + sections.length).toBeGreaterThan(0);
  },
);
