import { expect, test } from 'vitest';
import { adminPath, inPath } from '../../src/console/api/admin-api.ts';

test.each([
  'key_1',
  '.',
  '..',
  '...',
  '%2e%2e',
  '../backup',
  '..\\backup',
  'a/b',
  'a?b',
  'a#b',
  ' ',
  'ä😀',
  '//x',
])('the id %j is one part of a path, wherever it is from', (id) => {
  const { pathname, search, hash, origin } = new URL(
    adminPath(`keys/${inPath(id)}/rotate`),
    'http://gateway/console/',
  );
  expect([origin, search, hash]).toEqual(['http://gateway', '', '']);
  expect(pathname).toMatch(/^\/admin\/keys\/[^/]+\/rotate$/);
});
