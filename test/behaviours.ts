import { readFileSync } from 'node:fs';

/**
 * Compares the behaviours that are tested: `npm run behaviours -- BEFORE AFTER` prints the full name of each test that the
 * first list has and the second lacks (`-`), and the other way round (`+`), and ends with code 1 if any is lost. A list is
 * a report of a run (`TEST_REPORT=FILE npm run test:all`) or of `npx vitest list -c config/vitest.config.ts
 * --no-static-parse --json=FILE`. A name counts as often as tests have it; which file has it makes no difference.
 */

/** A test in the report of a run. */
interface Reported {
  readonly ancestorTitles: readonly string[];
  readonly title: string;
}

/** What vitest writes: the report of a run, or a list. */
type Written =
  | { readonly testResults: readonly { readonly assertionResults: readonly Reported[] }[] }
  | readonly { readonly name: string }[];

/** How often each full name of a test occurs in a file of vitest. */
function readNames(file: string): ReadonlyMap<string, number> {
  const written = JSON.parse(readFileSync(file, 'utf8')) as Written;
  const names =
    'testResults' in written
      ? written.testResults.flatMap(({ assertionResults }) =>
          assertionResults.map(({ ancestorTitles, title }) => [...ancestorTitles, title].join(' > ')),
        )
      : written.map(({ name }) => name);
  const counts = new Map<string, number>();
  // A name may say which service a test is skipped without, or which seed it has.
  for (const name of names.map((found) => found.replaceAll(/ \((?:needs .*?|seed \d+)\)(?=,? >|,?$)/g, '')))
    counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** The names that one list has more often than the other. */
function missing(of: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): readonly string[] {
  return [...of]
    .filter(([name, times]) => times > (other.get(name) ?? 0))
    .map(([name]) => name)
    .toSorted();
}

const [before, after] = process.argv.slice(2);
if (before === undefined || after === undefined) {
  process.stderr.write('npm run behaviours -- BEFORE AFTER: two reports or lists of vitest, in JSON\n');
  process.exit(2);
}
const [old, now] = [readNames(before), readNames(after)];
const [lost, added] = [missing(old, now), missing(now, old)];
for (const name of lost) process.stdout.write(`- ${name}\n`);
for (const name of added) process.stdout.write(`+ ${name}\n`);
const total = [...now.values()].reduce((sum, times) => sum + times, 0);
process.stdout.write(`${total} behaviours: ${lost.length} lost, ${added.length} added\n`);
process.exitCode = lost.length === 0 ? 0 : 1;
