import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { templateOf } from '../../src/http/admin/path-template.ts';

const { paths } = JSON.parse(readFileSync(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as {
  readonly paths: Readonly<Record<string, object>>;
};
const routes = Object.keys(paths).filter((path) => path.startsWith('/admin/'));

test('a refused call of each route of the admin API is noted by the whole route, without what stands in it', () => {
  expect(routes.length).toBeGreaterThan(30);
  for (const route of routes) {
    const path = route.slice('/admin'.length);
    const called = path.replaceAll(/\{[^}]*\}/g, 'sk-a-secret');
    expect(templateOf('GET', called)).toBe(`GET ${path.replaceAll(/\{[^}]*\}/g, ':id')}`);
  }
});
