import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Section, SectionResult } from './section.ts';

/** A section that was run, and how. */
export interface SectionRun extends SectionResult {
  readonly section: Section;
  readonly seed: number;
  readonly scale: number;
  readonly seconds: number;
}

const root = join(import.meta.dirname, '..', '..');
const pagePath = join(root, 'docs', 'contributors', 'scorecard.md');
const lastLine = '<!-- end of the scorecard -->';

/** The commit whose figures may be published. Throws if the checkout has changes: nothing would repeat such figures. */
export function publishedCommit(): string {
  const changes = git('status', '--porcelain');
  if (changes !== '')
    throw new Error(`Only figures of a commit can be published. Commit or stash first:\n${changes}`);
  return git('rev-parse', '--short=10', 'HEAD');
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trimEnd();
}

/** Writes what sections found into `docs/contributors/scorecard.md`; those of other sections stay. */
export function publish(runs: readonly SectionRun[], commit: string): void {
  writeFileSync(pagePath, withSections(readFileSync(pagePath, 'utf8'), runs, commit, new Date()));
}

/** A page with the text of each section between the section's own markers; a new one comes last. Throws without the end mark. */
export function withSections(page: string, runs: readonly SectionRun[], commit: string, at: Date): string {
  if (!page.includes(lastLine)) throw new Error(`the page lacks the line ${lastLine}`);
  return runs.reduce((text, run) => {
    const start = `<!-- ${run.section.name}: written by npm run scorecard -- --publish -->`;
    const end = `<!-- end of ${run.section.name} -->`;
    const block = `${start}\n\n${sectionText(run, commit, at)}\n\n${end}`;
    const from = text.indexOf(start);
    if (from === -1) return text.replace(lastLine, () => `${block}\n\n${lastLine}`);
    return text.slice(0, from) + block + text.slice(text.indexOf(end, from) + end.length);
  }, page);
}

function sectionText(run: SectionRun, commit: string, at: Date): string {
  const { section, cases, facts, faults, seed, scale, seconds } = run;
  const rows = [['cases', cases] as const, ...facts, ['faults', faults.length] as const];
  const isScaled = scale === 1 ? '' : ` --scale ${scale}`;
  return [
    `### ${section.title}`,
    section.about,
    `|  |  |\n| --- | --- |\n${rows.map(([label, value]) => `| ${label} | ${shown(value)} |`).join('\n')}`,
    `\`npm run scorecard -- --seed ${seed}${isScaled} ${section.name}\`: ${Math.round(seconds)} s, ` +
      `commit ${commit}, ${at.toISOString().slice(0, 10)}.`,
  ].join('\n\n');
}

/** A value as it is shown: numbers with thousands apart. */
export function shown(value: string | number): string {
  return typeof value === 'number' ? value.toLocaleString('en-US') : value;
}
