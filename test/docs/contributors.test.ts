import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { floors } from '../support/floors.ts';
import { pageTexts } from '../support/pages.ts';

const root = join(import.meta.dirname, '..', '..');

/** How long the orientation may be, in words, and how many terms it may explain. */
const maxWords = 1_500;
const maxTerms = 40;

/** How long a record of a decision may be, in words. */
const maxRecordWords = 400;

const readPage = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Paths in code: with a folder, and without placeholders. */
const pathsIn = (text: string): readonly string[] =>
  [...text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/`([\w.-]+(?:\/[\w.-]+)+\/?)`/g)].map(
    ([, path = '']) => path,
  );

/** The lines of tables and drawings are no words. */
const wordsOf = (text: string): number => text.match(/\S*\w\S*/g)?.length ?? 0;

const pages = pageTexts().filter(
  ([path]) => path.startsWith('docs/contributors/') || path === 'CONTRIBUTING.md',
);

test.each(pages)('%s names only files that exist', (_path, text) => {
  const named = pathsIn(text).filter((path) => /^(?:src|test|docs|config)\//.test(path));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('src/README.md names only files that exist', () => {
  const bases = ['', 'src'];
  const named = pathsIn(readPage('src/README.md')).filter((path) => /\.(?:ts|md|json)$|\/$/.test(path));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !bases.some((base) => existsSync(join(root, base, path))))).toEqual([]);
});

test('src/README.md can be read in an afternoon: it has few words, and explains few', () => {
  const text = readPage('src/README.md');
  expect(wordsOf(text)).toBeLessThanOrEqual(maxWords);
  const [, table = ''] = /\| word +\|([^]*?)\n\n/.exec(text) ?? [];
  const terms = [...table.matchAll(/^\| (?!--)/gm)];
  expect(terms.length).toBeGreaterThan(20);
  expect(terms.length).toBeLessThanOrEqual(maxTerms);
});

describe('the decisions', () => {
  const folder = 'docs/contributors/decisions/';
  const index = readPage(`${folder}README.md`);
  const records = pages
    .filter(([path]) => path.startsWith(folder) && path !== `${folder}README.md`)
    .map(([path, text]) => [path.slice(folder.length), text] as const);

  test('are all in their index, under their titles', () => {
    expect(records.length).toBeGreaterThan(20);
    const titled = records.map(([name, text]) => `| [${/^# (.+)/.exec(text)?.[1]}](${name}) |`);
    expect(titled.filter((link) => !index.includes(link))).toEqual([]);
    const listed = [...index.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => name);
    expect(new Set(listed)).toEqual(new Set(records.map(([name]) => name)));
  });

  test.each(records)('%s is short, and says what was decided before its context', (_name, text) => {
    expect(wordsOf(text)).toBeLessThanOrEqual(maxRecordWords);
    expect(text).toMatch(/^# .+\n\n(?!\*\*)[^]+?\n\n\*\*Context\.\*\* /);
  });
});

describe('the drawing of the floors', () => {
  const text = readPage('docs/contributors/house.md');
  const [, drawing = ''] = /```text\n([^]*?)```/.exec(text) ?? [];

  test('has every folder on its floor', () => {
    const drawn: Record<string, number> = {};
    let floor = -1;
    for (const line of drawing.trimEnd().split('\n')) {
      floor = Number(/^floor (\d)/.exec(line)?.[1] ?? floor);
      // The folders stand before the column of comments.
      const folders = line
        .slice(0, 70)
        .replace(/^floor \d/, '')
        .split(/\s+/);
      for (const folder of folders) if (folder !== '') drawn[folder] = floor;
    }
    expect(drawn).toEqual(floors);
  });

  test('says what is in every folder', () => {
    const described = [...text.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, folder]) => folder),
    );
    expect(new Set(described)).toEqual(new Set(Object.keys(floors)));
  });
});
