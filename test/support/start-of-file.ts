import { join, relative } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import { forgetPlanted } from './canaries.ts';
import { noteWarnings, refuseWarnings } from './node-warnings.ts';
import { beginFile, endFile } from './end-of-file.ts';

// Vitest runs this before each test file; modules live on from file to file, and so would what was planted.
forgetPlanted();
beginFile();
noteWarnings();
const coverage = process.env['TEST_COVERAGE'];
if (coverage !== undefined) {
  const { noteCoverage } = await import('../mutations/note-coverage.ts');
  const end = await noteCoverage(coverage);
  afterAll(() => end(relative(join(import.meta.dirname, '..', '..'), expect.getState().testPath ?? '')));
}
// Vitest calls the last hook first: this one after all others.
afterAll(async () => {
  // Node emits a warning in a turn of its own.
  await setImmediate();
  refuseWarnings();
});
afterAll(endFile);
