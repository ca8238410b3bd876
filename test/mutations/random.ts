import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { importsBetween } from '../support/import-graph.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { mutantsOf } from './mutants.ts';
import type { Mutant } from './mutants.ts';

/**
 * Checks that the short tests bite: puts random faults into a copy of the sources, one at a time, and runs the short tests
 * whose imports reach the file, nearest first, until one fails. Prints each fault with what found it, and how many were
 * found; a survivor is killed by a new test, or has a reason.
 */

const root = join(import.meta.dirname, '..', '..');

/** The sources that are changed: money, limits, endings, the contract, the edge. */
const targets = [
  'src/pipeline/money/**/*.ts',
  'src/pipeline/delivery/**/*.ts',
  'src/domain/{money,limits,budgets}/**/*.ts',
  'src/protocol/**/*.ts',
  'src/http/{connections,heads}/**/*.ts',
  'src/http/body.ts',
];

/** How many test files are run at first, and then: most faults are found by the nearest ones. */
const steps = [4, 16, Infinity];

/** How long the tests of a step may take, in milliseconds: a fault may make a loop endless. */
const timeoutMs = 600_000;

const {
  mutants: count,
  files: mostFiles,
  seed: given,
} = readScript({
  name: 'mutants',
  options: {
    mutants: countOption('how many faults are made', 300),
    files: countOption(
      'how many test files are run for one at the most: fewer find fewer, and sooner',
      1_000,
    ),
    seed: seedOption(null),
  },
});
const seed = given ?? Date.now() % 2 ** 31;
const random = seededNumbers(seed);

const tests = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] }).filter(
  (file) => !file.endsWith('.long.test.ts') && !file.startsWith('test/ratchet/'),
);

/** The short tests that reach a source, nearest first. */
function testsOf(target: string): readonly string[] {
  return tests
    .map((file) => ({ file, away: importsBetween(file, target) }))
    .filter(({ away }) => away < Infinity)
    .toSorted((one, other) => one.away - other.away || (one.file < other.file ? -1 : 1))
    .map(({ file }) => file);
}

const all = globSync(targets, { cwd: root })
  .toSorted()
  .flatMap((file) => mutantsOf(readFileSync(join(root, file), 'utf8')).map((mutant) => ({ file, mutant })));
const chosen = Array.from({ length: Math.min(count, all.length) }, () =>
  all.splice(Math.floor(random() * all.length), 1),
).flat();

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'textgate-mutants-')));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const listed = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
for (const file of listed.stdout.split('\n').filter(Boolean))
  cpSync(join(root, file), join(folder, file), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
process.stdout.write(`mutants: ${chosen.length} of ${all.length + chosen.length} (--seed ${seed})\n`);

/** Test files that failed beside others and not alone: they find nothing, and are run no more. */
const unsure = new Set<string>();

/** Whether a test file passes alone without a fault, as far as it is known. */
const soundness = new Map<string, boolean>();

const survivors: string[] = [];
for (const { file, mutant } of chosen) {
  const [found, name] = [findIn(file, mutant), describe(file, mutant)];
  if (found === null) survivors.push(name);
  process.stdout.write(
    `${found === null ? 'SURVIVED' : 'found   '} ${name}${found === null ? '' : `: ${found}`}\n`,
  );
}
const share = ((1 - survivors.length / chosen.length) * 100).toFixed(1);
process.stdout.write(`${chosen.length - survivors.length} of ${chosen.length} found (${share} %)\n`);
for (const name of survivors) process.stdout.write(`- ${name}\n`);

/** The test file that found a fault: alone it fails with it, and passes without it. `null` if there is none. */
function findIn(file: string, { start, end, text }: Mutant): string | null {
  const source = readFileSync(join(root, file), 'utf8');
  const changed = source.slice(0, start) + text + source.slice(end);
  const fails = (files: readonly string[], content: string): readonly string[] => {
    writeFileSync(join(folder, file), content);
    return failedOf(files);
  };
  const related = testsOf(file).slice(0, mostFiles);
  try {
    for (let step = 0; related.length > 0; step++) {
      let next = related.splice(0, steps[step] ?? Infinity).filter((test) => !unsure.has(test));
      while (next.length > 0) {
        const failed = fails(next, changed);
        if (failed.length === 0) break;
        const isSound = (test: string): boolean => {
          const known = soundness.get(test) ?? fails([test], source).length === 0;
          soundness.set(test, known);
          return known;
        };
        const isFound = (test: string): boolean => fails([test], changed).length > 0 && isSound(test);
        const found = failed.find(isFound);
        if (found !== undefined) return found;
        for (const test of failed) unsure.add(test);
        next = next.filter((test) => !unsure.has(test));
      }
    }
    return null;
  } finally {
    writeFileSync(join(folder, file), source);
  }
}

/** The first test file that fails; without a report, such as after an endless loop, all of them. */
function failedOf(files: readonly string[]): readonly string[] {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const args = ['run', '-c', 'config/vitest.config.ts', '--bail', '1', ...files];
  spawnSync(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...args], {
    cwd: folder,
    env: { ...process.env, TEST_SUITE: 'short', TEST_REPORT: report, FC_SEED: '1' },
    timeout: timeoutMs,
    stdio: 'ignore',
  });
  if (!existsSync(report)) return files;
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(folder, name));
}

/** What is read of a report of vitest. */
interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}

/** Where a fault is, and what it does. */
function describe(file: string, { start, end, kind }: Mutant): string {
  const before = readFileSync(join(root, file), 'utf8');
  const line = before.slice(0, start).split('\n').length;
  const [changed = ''] = before.slice(start, end).split('\n');
  return `${file}:${line} ${kind}: ${changed.trim()}`;
}
