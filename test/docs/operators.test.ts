import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { movedPages } from '../../src/manual/open-manual.ts';
import { alerts } from '../observability/monitoring-files.ts';
import { generatedFile } from '../support/generated-file.ts';
import { anchorOf, headingsOf, withContents } from '../support/page-contents.ts';
import { pageTexts } from '../support/pages.ts';

const root = join(import.meta.dirname, '..', '..');
const pages = new Map(pageTexts());
const index = readFileSync(join(root, 'docs/README.md'), 'utf8');
const operators = [...pages].filter(([path]) => path.startsWith('docs/operators/'));

/** Whether a page, by its path below `docs` without `.md`, is there, and has the anchor if one is given. */
function leadsSomewhere(place: string): boolean {
  const [path = '', anchor] = place.split('#');
  const text = pages.get(`docs/${path === '' ? 'README' : path}.md`);
  if (text === undefined) return false;
  return anchor === undefined || headingsOf(text).some((heading) => anchorOf(heading.text) === anchor);
}

/** What operators ask most, by words of the question, as it stands in the index. */
const questions = [
  'A key is refused',
  'An upstream is slow',
  'move to two nodes',
  'what did bob spend last week',
  'take a backup',
  'rotate a key',
  'see prompts',
  'put it behind TLS',
  'upgrade',
  'At night',
];

describe('the index of operators', () => {
  test.each(questions)('answers “%s” one click away, at the section that it is about', (question) => {
    const line = index.split('\n').find((each) => each.startsWith('- ') && each.includes(question)) ?? '';
    const [, target = ''] = /\]\(([\w/-]+)\.md#/.exec(line) ?? [];
    const [, anchor = ''] = /#([\w-]+)\)/.exec(line) ?? [];
    expect(`${target}#${anchor}`).toMatch(/^operators\/[\w-]+#[\w-]+$/);
    expect(leadsSomewhere(`${target}#${anchor}`)).toBe(true);
  });

  test('lists the pages for contributors last', () => {
    const headings = headingsOf(index).map(({ text }) => text);
    expect(headings.at(-1)).toMatch(/^Contributors/);
    const [, contributors = ''] = index.split('## Contributors');
    for (const name of ['performance', 'scorecard', 'image', 'simulations'])
      expect(contributors).toContain(`](contributors/${name}.md)`);
  });
});

describe('a page for operators', () => {
  test('is one of few', () => {
    expect(operators.length).toBeLessThanOrEqual(23);
  });

  test.each(operators)('%s begins with what a reader can do with it', (_path, text) => {
    const [, first = ''] = /^# .+\n\n(.+)/.exec(text) ?? [];
    expect(first).toMatch(/^[A-Z][a-z]+,? /);
    expect(first).not.toMatch(/^(?:A|An|The|This|What|How|Who|Which|Where|Whether|Every|Each) /);
  });

  const long = operators.filter(([, text]) => headingsOf(text).length > 3);
  test.each(long)('%s has a table of its sections', (path, text) => {
    const wanted = withContents(text);
    expect(generatedFile(path, wanted)).toBe(wanted);
  });

  test.each(operators)('%s has each heading once', (_path, text) => {
    const anchors = headingsOf(text).map((heading) => anchorOf(heading.text));
    expect(anchors.filter((anchor, place) => anchors.indexOf(anchor) !== place)).toEqual([]);
  });

  test('about monitoring names every critical alert among what to watch', () => {
    const [, watched = ''] =
      /^## What to watch\n([^]*?)^## /m.exec(pages.get('docs/operators/monitoring.md') ?? '') ?? [];
    const critical = alerts.filter(({ labels }) => labels?.['severity'] === 'critical');
    expect(critical.length).toBeGreaterThan(5);
    expect(critical.filter(({ alert = '' }) => !watched.includes(`[${alert}](`))).toEqual([]);
  });
});

describe('the name of a page that was moved', () => {
  test.each([...movedPages])('%s leads to %s, which is there', (old, place) => {
    expect(pages.has(`docs/${old}.md`)).toBe(false);
    expect(leadsSomewhere(place)).toBe(true);
  });

  test.each(['src', 'config', 'test', 'docs'])('stands in no file of %s', (folder) => {
    const names = [...movedPages.keys()].map((path) => `docs/${path}.md`);
    const files = globSync(`${folder}/**/*.{ts,js,md,txt,yml,yaml,json,service}`, {
      cwd: root,
      exclude: (path) => path.includes('node_modules'),
    });
    const found = files.filter((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return names.some((name) => text.includes(name));
    });
    expect(files.length).toBeGreaterThan(10);
    expect(found).toEqual([]);
  });
});
