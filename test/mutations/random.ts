import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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
import { countOption, readScript, seedOption, textOption } from '../support/script-options.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { findCoveringTests } from './covering-tests.ts';
import { knownSurvivors } from './known-survivors.ts';
import { mutantsOf, placeOf } from './mutants.ts';
import type { Mutant } from './mutants.ts';

/**
 * Checks that the short tests bite: puts random faults into a copy of the sources, one at a time, and runs the short
 * tests that run the changed code, the likeliest and cheapest first, until one fails. Prints each fault with what found
 * it, and how many were found; a survivor is killed by a new test, or has a reason.
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

/** How many test files are run at first, and then: most faults are found by the first ones. */
const steps = [4, 12, Infinity];

const options = readScript({
  name: 'mutants',
  options: {
    mutants: countOption('how many faults are made', 300),
    files: countOption('how many test files are run for one at the most: fewer find fewer, and sooner', 40),
    only: textOption('makes all faults of one line, such as src/http/body.ts:12, or of one file'),
    again: textOption('makes the faults that survived an earlier run, whose output is in this file'),
    seed: seedOption(null),
  },
});
const seed = options.seed ?? Date.now() % 2 ** 31;
const random = seededNumbers(seed);

const all = globSync(targets, { cwd: root })
  .toSorted()
  .flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8');
    return mutantsOf(source).map((mutant) => {
      const { line, lineText, change } = placeOf(source, mutant);
      const isKnown = knownSurvivors.some(
        (known) => known.file === file && known.line === lineText && known.change === change,
      );
      return { file, source, mutant, name: `${file}:${line} ${change}`, isKnown };
    });
  });
const chosen = choose().filter(({ isKnown }) => !isKnown);

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'textgate-mutants-')));
process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 9 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const listed = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
for (const file of listed.stdout.split('\n').filter((name) => name !== '' && existsSync(join(root, name))))
  cpSync(join(root, file), join(folder, file), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));

const covering = await findCoveringTests((files, variables) => failedOf(files, 3_600_000, variables));
process.stdout.write(`mutants: ${chosen.length} (--seed ${seed})\n`);

const survivors: string[] = [];
for (const { file, source, mutant, name } of chosen) {
  const found = await findIn(file, source, mutant);
  if (found === null) survivors.push(name);
  process.stdout.write(found === null ? `SURVIVED ${name}\n` : `found    ${name}: ${found}\n`);
}
const share = ((1 - survivors.length / chosen.length) * 100).toFixed(1);
process.stdout.write(`${chosen.length - survivors.length} of ${chosen.length} found (${share} %)\n`);
for (const name of survivors) process.stdout.write(`- ${name}\n`);

/** Faults by chance, those of one place, or those that survived before. */
function choose() {
  const { only, again, mutants } = options;
  if (again !== null) {
    const survived = new Set(
      Array.from(readFileSync(again, 'utf8').matchAll(/^SURVIVED (.+)$/gm), ([, name = '']) => name),
    );
    const found = all.filter(({ name }) => survived.delete(name));
    for (const name of survived) process.stdout.write(`no longer there: ${name}\n`);
    return found;
  }
  if (only !== null) return all.filter(({ file, name }) => file === only || name.startsWith(`${only} `));
  return Array.from({ length: Math.min(mutants, all.length) }, () =>
    all.splice(Math.floor(random() * all.length), 1),
  ).flat();
}

/** The test file that found a fault, and found it again alone. `null` if there is none. */
async function findIn(
  file: string,
  source: string,
  { start, end, text, runsAt }: Mutant,
): Promise<string | null> {
  const related = covering.testsOf(file, runsAt).slice(0, options.files);
  writeFileSync(join(folder, file), source.slice(0, start) + text + source.slice(end));
  try {
    for (let step = 0; related.length > 0; step++) {
      let next = related.splice(0, steps[step]);
      while (next.length > 0) {
        const [failed] = await failedOf(next, timeoutOf(next));
        if (failed === undefined) break;
        if ((await failedOf([failed], timeoutOf([failed]))).length > 0) return failed;
        next = next.filter((test) => test !== failed);
      }
    }
    return null;
  } finally {
    writeFileSync(join(folder, file), source);
  }
}

/** How long test files may take, in milliseconds: a fault may make a loop endless. */
function timeoutOf(files: readonly string[]): number {
  return 30_000 + 5 * files.reduce((sum, test) => sum + covering.msOf(test), 0);
}

/** The test files that failed, of which a run with a fault has one; without a report, such as after an endless loop, all. */
async function failedOf(
  files: readonly string[],
  timeoutMs: number,
  variables?: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const bail = variables === undefined ? ['--bail', '1'] : [];
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '-c', 'config/vitest.config.ts', ...bail, ...files], {
    cwd: folder,
    env: { ...process.env, TEST_SUITE: 'short', TEST_REPORT: report, FC_SEED: '1', ...variables },
    stdio: 'ignore',
    detached: true,
  });
  // The whole group, as a worker in an endless loop does not notice that its parent is gone.
  const kill = (): boolean => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(kill, timeoutMs);
  process.prependOnceListener('exit', kill);
  await once(child, 'exit');
  clearTimeout(timer);
  process.off('exit', kill);
  if (!existsSync(report)) return files;
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  return testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(folder, name));
}

/** What is read of a report of vitest. */
interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}
