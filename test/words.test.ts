import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Words that hide what is meant: they make persons of programs, or leave a clause without its noun. An operator who
 * greps the log, and a reader whose first language is another one, find the field's own word instead.
 */
const riddles = [
  'nobody',
  'somebody',
  'anybody',
  'whoever',
  'whomever',
  'hears',
  'heard of',
  'is told of',
  'are told of',
  'left alone',
  'looked over',
  'lets go of',
  'one that is one',
  'so many of them',
  'for ever after',
] as const;

const root = join(import.meta.dirname, '..');
const texts = [
  ...globSync(['src/**/*.{ts,md}', 'test/**/*.ts', 'config/**/*.{json,yml,yaml}', 'docs/**/*.md', '*.md'], {
    cwd: root,
    exclude: ['**/node_modules/**'],
  }),
].filter((path) => path !== 'test/words.test.ts');

test('no source, test or page uses a word that hides what is meant', () => {
  expect(texts.length).toBeGreaterThan(300);
  const banned = new RegExp(`\\b(${riddles.join('|').replaceAll(' ', '\\s+')})\\b`, 'i');
  const found = texts.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => (banned.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});
