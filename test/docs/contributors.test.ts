import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { floors } from '../support/floors.ts';
import { pageTexts } from '../support/pages.ts';

const root = join(import.meta.dirname, '..', '..');
const readPage = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Paths in code: with a folder, and without placeholders. */
const pathsIn = (text: string): readonly string[] =>
  [...text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/`([\w.-]+(?:\/[\w.-]+)+\/?)`/g)].map(
    ([, path = '']) => path,
  );

const pages = pageTexts().filter(
  ([path]) => path.startsWith('docs/contributors/') || path === 'CONTRIBUTING.md',
);

test.each(pages)('%s names only files that exist', (_path, text) => {
  const named = pathsIn(text).filter((path) => /^(?:src|test|docs|config)\//.test(path));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('src/README.md names only files that exist', () => {
  const bases = ['', 'src', 'src/pipeline', 'src/protocol'];
  const named = pathsIn(readPage('src/README.md')).filter((path) => /\.(?:ts|md|json)$|\/$/.test(path));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !bases.some((base) => existsSync(join(root, base, path))))).toEqual([]);
});

describe('the drawing of the house', () => {
  const text = readPage('docs/contributors/house.md');
  const [, drawing = ''] = /```text\n([^]*?)```/.exec(text) ?? [];

  test('has every room on its floor', () => {
    const drawn: Record<string, number> = {};
    let floor = -1;
    for (const line of drawing.trimEnd().split('\n')) {
      floor = Number(/^floor (\d)/.exec(line)?.[1] ?? floor);
      // The rooms stand before the column of comments.
      const rooms = line
        .slice(0, 70)
        .replace(/^floor \d/, '')
        .split(/\s+/);
      for (const room of rooms) if (room !== '') drawn[room] = floor;
    }
    expect(drawn).toEqual(floors);
  });

  test('says what is in every room', () => {
    const described = [...text.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, room]) => room),
    );
    expect(new Set(described)).toEqual(new Set(Object.keys(floors)));
  });
});
