import { createHash } from 'node:crypto';
import { existsSync, globSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { importsBetween } from '../support/import-graph.ts';
import { mutantsOf } from './mutants.ts';
import { coverageName } from './note-coverage.ts';
import type { Covered } from './note-coverage.ts';

const root = join(import.meta.dirname, '..', '..');

/** What the test files ran, kept until a source changes, or what tests share. */
const kept = join(root, 'node_modules', '.cache', 'mutants');

const exclude = ['**/node_modules/**'];

/** The short tests, but for those that compare what code costs, and those for which Vite loads the sources: it moves code. */
const tests = globSync('test/**/*.test.ts', { cwd: root, exclude })
  .filter((file) => !file.endsWith('.long.test.ts') && !file.startsWith('test/ratchet/'))
  .filter((file) => !readFileSync(join(root, file), 'utf8').includes('vi.mock('))
  .toSorted();

/**
 * A function may run only when the first test file of a worker imports its module, and is counted for that file alone: how many
 * of the test files that are nearest by their imports are tried as well, and behind how many of those that were seen to run it.
 */
const nearestImporting = 8;
const runFirst = 8;

/** How many of those that run a place are tried first since they are nearest by their imports: often it is what they are for. */
const nearestRunning = 3;

/** Gives the short tests that run a place of a source, first those that are cheap and run what few others run of it. */
export interface CoveringTests {
  testsOf(source: string, offset: number): readonly string[];
  /** How long a test file took, in milliseconds. */
  msOf(test: string): number;
}

/**
 * Finds which test files run which parts of the sources. `run` runs some of them without a fault and with variables in the
 * environment, and returns those that failed, which then find nothing.
 */
export async function findCoveringTests(
  run: (files: readonly string[], variables: NodeJS.ProcessEnv) => Promise<readonly string[]>,
): Promise<CoveringTests> {
  const hash = createHash('sha256');
  const shared = globSync(['src/**/*.*', 'test/**/*.ts'], {
    cwd: root,
    exclude: [...exclude, 'test/mutations/**'],
  });
  for (const file of shared.toSorted())
    if (!file.endsWith('.test.ts')) hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  const name = hash.digest('hex').slice(0, 16);
  const folder = join(kept, name);
  if (existsSync(kept))
    for (const other of readdirSync(kept)) if (other !== name) rmSync(join(kept, other), { recursive: true });

  const missing = tests.filter((file) => !existsSync(join(folder, coverageName(file))));
  if (missing.length > 0) {
    process.stdout.write(`coverage: runs ${missing.length} test files\n`);
    // V8 counts no blocks in code that it takes from a cache.
    const failed = await run(missing, { TEST_COVERAGE: folder, NODE_DISABLE_COMPILE_CACHE: '1' });
    for (const file of failed) {
      process.stdout.write(`coverage: ${file} failed without a fault\n`);
      rmSync(join(folder, coverageName(file)), { force: true });
    }
  }
  const covered = tests
    .map((file) => join(folder, coverageName(file)))
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as Covered);
  const known = new Map(covered.map(({ file, ms }) => [file, ms]));
  const sources = new Map<string, SourceTests>();
  return {
    testsOf(source, offset) {
      const found = sources.get(source) ?? sourceTests(source, covered);
      sources.set(source, found);
      const running = found.running
        .get(offset)
        ?.toSorted((one, other) => costOf(one, found) - costOf(other, found))
        .map(({ file }) => file);
      // What is outside of functions runs when the first test file of a worker imports it.
      if (running === undefined) return found.importing;
      const own = found.importing.filter((file) => running.includes(file)).slice(0, nearestRunning);
      const nearest = found.importing.slice(0, nearestImporting).filter((file) => !running.includes(file));
      const others = running.filter((file) => !own.includes(file));
      return [...own, ...others].toSpliced(runFirst, 0, ...nearest);
    },
    msOf: (test) => known.get(test) ?? 0,
  };
}

/** The test files that run the functions of a source. */
interface SourceTests {
  /** By the place of a fault within a function. */
  readonly running: ReadonlyMap<number, readonly Covered[]>;
  /** How many test files run the place that fewest do, of those that one runs. */
  readonly rarest: ReadonlyMap<Covered, number>;
  /** Those that import the source, the nearest ones first. */
  readonly importing: readonly string[];
}

function sourceTests(source: string, covered: readonly Covered[]): SourceTests {
  const [running, rarest] = [new Map<number, Covered[]>(), new Map<Covered, number>()];
  for (const { runsAt } of mutantsOf(readFileSync(join(root, source), 'utf8'))) {
    const counts = covered.map((test) => ({ test, count: countAt(test.parts[source] ?? [], runsAt) }));
    if (counts.every(({ count }) => count === null)) continue;
    const runners = counts.filter(({ count }) => (count ?? 0) > 0).map(({ test }) => test);
    running.set(runsAt, runners);
    for (const test of runners) rarest.set(test, Math.min(runners.length, rarest.get(test) ?? Infinity));
  }
  const importing = covered
    .map(({ file }) => ({ file, away: importsBetween(file, source) }))
    .filter(({ away }) => away < Infinity)
    .toSorted((one, other) => one.away - other.away)
    .map(({ file }) => file);
  return { running, rarest, importing };
}

/** What it costs to find a fault by a test, in its order: one that only runs what all others run is not likely to. */
function costOf(test: Covered, { rarest }: SourceTests): number {
  return test.ms * (rarest.get(test) ?? Infinity);
}

/** How often the innermost part around an offset was run; `null` if none is around it. */
function countAt(parts: Covered['parts'][string], offset: number): number | null {
  let [width, found] = [Infinity, null as number | null];
  for (const [start, end, count] of parts)
    if (start <= offset && offset < end && end - start <= width) [width, found] = [end - start, count];
  return found;
}
