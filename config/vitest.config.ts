import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import type { Reporter, TestModule } from 'vitest/node';
import { makeMemoryFolder } from '../test/support/memory-folder.ts';

const root = join(import.meta.dirname, '..');

/** Tests that need a service, or take long: `npm test` leaves them out, and `npm run test:long` runs them alone. */
const longFiles = 'test/**/*.long.test.ts';

/** What is run, unless paths name it: the long tests, the short ones, or all. */
const suite = process.env['TEST_SUITE'] ?? 'all';
const include = [suite === 'long' ? longFiles : 'test/**/*.test.ts'];
const leftOut = ['**/node_modules/**', ...(suite === 'short' ? [longFiles] : [])];

/** Files that replace a module of src, or load it anew: each gets a worker of its own, whose modules Vite loads. */
const filesWithMocks = globSync(include, { cwd: root, exclude: leftOut }).filter((file) =>
  /\bvi\.(?:mock|resetModules)\(/.test(readFileSync(join(root, file), 'utf8')),
);

/** Files that compare what two pieces of code cost. */
const costs = ['test/ratchet/**/*.test.ts'];

// Compiled modules are kept for the next worker, and for every gateway that a test starts as a process.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'node_modules', '.cache', 'compiled-modules');

// What tests write is gone after them: the disk would only make them wait.
const memoryFolder = process.env['TMPDIR'] === undefined ? makeMemoryFolder() : null;
if (memoryFolder !== null) process.env['TMPDIR'] = memoryFolder;

if (process.argv[2] === 'list') process.env['TEST_LISTED'] = '1';

/** The seed of all properties of a run. */
const seed = (process.env['FC_SEED'] ??= String(Date.now() % 2 ** 31));

/** Whether only tests of some names are run: then all others are skipped, and listing them says nothing. */
let isFilteredByName = false;

/** Prints the seed of the properties, and every test that was not run; its name says what it needs. */
const seedAndSkippedTests: Reporter = {
  onInit(vitest) {
    isFilteredByName = vitest.config.testNamePattern !== undefined;
  },
  onTestRunEnd(modules: readonly TestModule[]) {
    process.stdout.write(`properties: FC_SEED=${seed}\n`);
    if (isFilteredByName) return;
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    for (const { module, fullName } of skipped)
      process.stdout.write(`skipped: ${module.relativeModuleId}: ${fullName}\n`);
  },
};

/** Where the report for .ci/run goes. */
const reportFile = process.env['TEST_REPORT'];

// Bounds against hanging, not measures: a busy machine may take ten times as long as a quiet one.
const shared = {
  root,
  testTimeout: 120_000 * Math.max(1, Number(process.env['PROPERTY_TIMES'] ?? 1)),
  hookTimeout: 120_000,
  expect: { poll: { timeout: 60_000 } },
  setupFiles: [join(root, 'test/support/start-of-file.ts')],
};

export default defineConfig({
  root,
  test: {
    globalSetup: suite === 'short' ? [] : [join(root, 'test/support/postgres-for-all.ts')],
    // One more than the cores of a small machine: tests wait for deadlines, and for processes.
    maxWorkers: 3,
    reporters: [
      'default',
      seedAndSkippedTests,
      ...(reportFile === undefined ? [] : [['json', { outputFile: reportFile }] satisfies ['json', object]]),
    ],
    projects: [
      {
        test: {
          ...shared,
          name: 'modules shared',
          include,
          exclude: [...leftOut, ...filesWithMocks, ...costs],
          // Workers live on from file to file and load the sources as Node runs them in production, without Vite.
          isolate: false,
          experimental: { viteModuleRunner: false },
        },
      },
      { test: { ...shared, name: 'modules mocked', include: filesWithMocks } },
      {
        test: {
          ...shared,
          name: 'costs',
          include: suite === 'long' ? [] : costs,
          // A process of its own for each file: code that other tests have run with all kinds of values is slower.
          pool: 'forks',
          isolate: true,
          experimental: { viteModuleRunner: false },
        },
      },
    ],
  },
});
