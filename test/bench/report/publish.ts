import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchRun } from '../compare/run.ts';
import { ownCheckout } from '../subjects/textgate.ts';
import { drawPicture } from './draw-picture.ts';
import { figureRows } from './figures.ts';
import { writeMainFigures, writeReport } from './write-report.ts';

/** The section of each page that has figures: all of them, or the few that sum them up. */
const fullSection = 'figures';
const shortSection = 'main figures';

/** Why figures of these commits are not published, with what to do instead; null if they may be. */
export function refusalToPublish(commits: readonly string[]): string | null {
  const unnamed = commits.find((commit) => commit.endsWith('-dirty') || commit === 'unknown');
  if (unnamed !== undefined)
    return `Figures of '${unnamed}' are not published, as no commit has that code: commit, and run the bench again.`;
  const names = [...new Set(commits)];
  return names.length <= 1
    ? null
    : `Figures of several commits (${names.join(', ')}) are not published together: publish runs of one of them.`;
}

/** Writes tables and picture into the documentation. Throws when they are not those of one commit. */
export function publish(runs: readonly BenchRun[]): void {
  const refusal = refusalToPublish(runs.map(({ surroundings }) => surroundings.commit));
  if (refusal !== null) throw new Error(refusal);
  const rows = figureRows(runs);
  replace(join(ownCheckout, 'docs', 'performance.md'), fullSection, writeReport(runs));
  replace(join(ownCheckout, 'README.md'), shortSection, writeMainFigures(rows));
  writeFileSync(join(ownCheckout, 'docs', 'performance.svg'), drawPicture(rows));
}

function replace(path: string, section: string, figures: string): void {
  writeFileSync(path, withFigures(readFileSync(path, 'utf8'), section, figures));
}

/** A page with new figures in the place of the old ones. Throws when it has no place for them. */
export function withFigures(page: string, section: string, figures: string): string {
  const start = `<!-- ${section}: written by npm run bench -- --publish -->\n`;
  const end = `\n<!-- end of ${section} -->`;
  const [before = '', rest] = page.split(start);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`the page has no section '${section}'`);
  return `${before}${start}\n${figures}\n${end}${after}`;
}
