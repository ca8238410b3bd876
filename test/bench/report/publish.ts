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

/** Writes tables and picture into the documentation. */
export function publish(runs: readonly BenchRun[]): void {
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
