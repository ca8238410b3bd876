import { globSync } from 'node:fs';
import { join } from 'node:path';
import { randomNumbers } from '../support/random-numbers.ts';
import { factor, onOff, readScript, seedOption } from '../support/script-options.ts';
import { publish, publishedCommit, shown } from './publish.ts';
import type { SectionRun } from './publish.ts';
import type { Section } from './section.ts';

/**
 * Runs the sections of the scorecard, all without names: `npm run scorecard -- [--seed N] [--scale N] [--publish] [section …]`.
 * Exits with 1 if a bound is broken. `--publish` writes the figures of a clean checkout into docs/contributors/scorecard.md.
 */

/** How many faults of a section are printed. */
const maxFaultsPrinted = 20;

const folder = join(import.meta.dirname, 'sections');
const names = globSync('*.ts', { cwd: folder })
  .map((file) => file.replace(/\.ts$/, ''))
  .toSorted();
const {
  parts,
  scale,
  publish: publishes,
  seed: given,
} = readScript({
  name: 'scorecard',
  options: {
    scale: factor('how much is tried, of what is tried otherwise', 1),
    publish: onOff('writes the figures into the documentation, of a clean checkout only'),
    seed: seedOption(null),
  },
  parts: names,
});
const { seed } = randomNumbers(given);
// For processes that a section starts.
process.env['FC_SEED'] = String(seed);
const commit = publishes ? publishedCommit() : '';

const runs: SectionRun[] = [];
for (const name of parts.length === 0 ? names : parts) runs.push(await runSection(name));
const failed = runs.filter(({ faults }) => faults.length > 0);
if (publishes && failed.length === 0) publish(runs, commit);
if (publishes && failed.length > 0) print('Nothing is published: a bound is broken.');
process.exit(failed.length === 0 ? 0 : 1);

async function runSection(name: string): Promise<SectionRun> {
  const { section } = (await import(join(folder, `${name}.ts`))) as { section: Section };
  print(`${name}: ${section.title} (seed ${seed}, scale ${scale})`);
  const startedMs = performance.now();
  const result = await section.run({ seed, scale, log: (line) => print(`  ${line}`) });
  const seconds = (performance.now() - startedMs) / 1_000;
  const rows = [
    ['cases', result.cases] as const,
    ...result.facts,
    ['faults', result.faults.length] as const,
    ['duration', `${seconds.toFixed(1)} s`] as const,
  ];
  const width = Math.max(...rows.map(([label]) => label.length));
  for (const [label, value] of rows) print(`  ${label.padEnd(width)}  ${shown(value)}`);
  for (const fault of result.faults.slice(0, maxFaultsPrinted)) print(`  FAULT ${fault}`);
  return { ...result, section, seed, scale, seconds };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
