import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsBetween } from './import-graph.ts';

const root = join(import.meta.dirname, '..', '..');

/** What starts or needs a service, or a program that is no part of a checkout. */
const services = [
  'browser/launch',
  'debian-proxies',
  'packed-package',
  'pgbouncer',
  'proxy-process',
  'served-workers',
  'test-postgres',
].map((name) => `test/support/${name}.ts`);

test('npm test needs no service: what imports one is in a file named *.long.test.ts', () => {
  // The report of the benches names their scenarios, and runs none.
  const exclude = ['test/**/*.long.test.ts', 'test/bench/report/**'];
  const short = globSync('test/**/*.test.ts', { cwd: root, exclude });
  expect(short.length).toBeGreaterThan(300);
  const needing = short.filter((file) =>
    services.some((service) => importsBetween(file, service) < Infinity),
  );
  expect(needing).toEqual([]);
});

test('a file with a service is known to have it', () => {
  for (const service of services) {
    const using = globSync('test/**/*.long.test.ts', { cwd: root });
    expect([service, using.some((file) => importsBetween(file, service) < Infinity)]).toEqual([
      service,
      true,
    ]);
  }
});
