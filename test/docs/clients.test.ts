import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The columns of the table of clients: client, whether it works, what to set, what that is known from. */
function clientRows(): readonly (readonly string[])[] {
  const [, section = ''] = /\n## Which clients work\n([^]+?)\n#/.exec(read('docs/callers/clients.md')) ?? [];
  const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| **'));
  return rows.slice(1).map((row) => row.slice(2, -2).split(' | '));
}

test('every client of the table says what that is known from', () => {
  const vague = clientRows().filter(
    ([, , , source = '']) =>
      !/^(?:tests: `.+|tests, where .+|tried(?:, [^:]+)?: \d.+|documents)$/.test(source),
  );
  expect(vague).toEqual([]);
  expect(clientRows().length).toBeGreaterThan(20);
});

test('the clients of the table that tests talk to have the versions that the tests install', () => {
  const { dependencies } = JSON.parse(read('test/outside/package.json')) as {
    dependencies: Record<string, string>;
  };
  const installed = new Set(
    Object.entries(dependencies).map(([name, version]) =>
      version.startsWith('npm:') ? version.slice(4) : `${name}@${version}`,
    ),
  );
  const named = clientRows().flatMap(([, , , source = '']) =>
    [...source.matchAll(/`([^`]+)` (\d+\.\d+\.\d+)/g)].map(([, name, version]) => `${name}@${version}`),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((client) => !installed.has(client))).toEqual([]);
});
