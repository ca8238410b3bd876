import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchRun } from '../compare/run.ts';
import { ownCheckout } from '../subjects/textgate.ts';
import { drawPicture } from './draw-picture.ts';
import { figureRows } from './figures.ts';
import { writeReport } from './write-report.ts';

const start = '<!-- figures: written by npm run bench -- --publish -->\n';
const end = '\n<!-- end of figures -->';

/** Writes tables and picture into the documentation. */
export function publish(runs: readonly BenchRun[]): void {
  const page = join(ownCheckout, 'docs', 'performance.md');
  writeFileSync(page, withFigures(readFileSync(page, 'utf8'), writeReport(runs)));
  writeFileSync(join(ownCheckout, 'docs', 'performance.svg'), drawPicture(figureRows(runs)));
}

/** A page with new figures in the place of the old ones. Throws when it has no place for them. */
export function withFigures(page: string, figures: string): string {
  const [before = '', rest] = page.split(start);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error('the page has no section for figures');
  return `${before}${start}\n${figures}\n${end}${after}`;
}
