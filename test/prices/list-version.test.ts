import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeAge, listVersion } from '../../src/prices/open-price-list.ts';

const dayMs = 86_400_000;

test('the day of the list of prices is that of the version that is installed', () => {
  const manifest = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  const { dependencies } = JSON.parse(manifest) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  expect(dependencies['@pydantic/genai-prices']).toBe(listVersion.version);
});

test('a list is old after 90 days', () => {
  expect(describeAge(listVersion.publishedMs + 90 * dayMs)).toBeNull();
  expect(describeAge(listVersion.publishedMs + 90 * dayMs + 1)).toMatch(/of 2026-09-23/);
});
