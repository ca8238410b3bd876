import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsBetween } from './import-graph.ts';

const root = join(import.meta.dirname, '..', '..');

/** What starts or needs a service, or a program that is no part of a checkout. */
const services = [
  'outside/kubernetes-schemas',
  'outside/workflow-parser',
  'support/browser/launch',
  'support/debian-proxies',
  'support/packed-package',
  'support/pgbouncer',
  'support/proxy-process',
  'support/served-workers',
  'support/test-postgres',
].map((name) => `test/${name}.ts`);

test('npm test needs no service: what imports one is in a file named *.long.test.ts', () => {
  // The report of the benches names their scenarios, and runs none.
  const exclude = ['test/**/*.long.test.ts', 'test/bench/report/**', '**/node_modules/**'];
  const short = globSync('test/**/*.test.ts', { cwd: root, exclude });
  expect(short.length).toBeGreaterThan(300);
  const needing = short.filter((file) =>
    services.some((service) => importsBetween(file, service) < Infinity),
  );
  expect([...needing, ...short.filter((file) => file.startsWith('test/outside/'))]).toEqual([]);
});

test('a file with a service is known to have it', () => {
  const using = globSync('test/**/*.long.test.ts', { cwd: root, exclude: ['**/node_modules/**'] });
  for (const service of services) {
    expect([service, using.some((file) => importsBetween(file, service) < Infinity)]).toEqual([
      service,
      true,
    ]);
  }
});
