import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { metricSum } from './gateway-state.ts';
import { withSections } from './publish.ts';
import type { Section } from './section.ts';

const folder = join(import.meta.dirname, 'sections');
const at = new Date('2026-01-02T03:04:05Z');
const page = 'Before.\n\n<!-- end of the scorecard -->\n';

test('each section has the name of its file, and says what it tries', async () => {
  const files = globSync('*.ts', { cwd: folder });
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const { section } = (await import(join(folder, file))) as { section: Section };
    expect(`${section.name}.ts`).toBe(file);
    expect(section.title).not.toBe('');
    expect(section.about).toMatch(/\.$/);
  }
});

test('figures are published between the markers of their section, and those of others stay', () => {
  const first = withSections(page, [run('resets', 1_200), run('soak', 7)], 'abc', at);
  expect(first).toContain('| cases | 1,200 |');
  expect(first).toContain('`npm run scorecard -- --seed 5 resets`: 3 s, commit abc, 2026-01-02.');
  const second = withSections(first, [run('resets', 42)], 'def', at);
  expect(second).toBe(first.replace('| cases | 1,200 |', '| cases | 42 |').replace('abc', 'def'));
});

test('a page without its end mark is not changed', () => {
  expect(() => withSections('Nothing.', [run('resets', 1)], 'abc', at)).toThrow('the page lacks the line');
});

test('a metric is summed over its series alone', () => {
  const metrics = '# TYPE a gauge\na{x="1"} 2\na{x="} 9"} 3\na_total{x="1"} 50\n';
  expect(metricSum(metrics, 'a')).toBe(5);
  expect(metricSum('a 1\n', 'a')).toBe(1);
});

function run(name: string, cases: number): Parameters<typeof withSections>[1][number] {
  const section: Section = { name, title: `About ${name}`, about: 'A try.', run: () => Promise.reject() };
  return { section, cases, facts: [['a fact', 'a value']], faults: [], seed: 5, scale: 1, seconds: 3.2 };
}
