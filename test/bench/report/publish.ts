import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchRun } from '../compare/run.ts';
import { ownCheckout } from '../subjects/textgate.ts';
import { drawPicture } from './draw-picture.ts';
import { figureRows } from './figures.ts';
import { writeOverPostgres } from './over-postgres.ts';
import { writeComparison, writeMainFigures, writeSurroundings } from './write-report.ts';

/** The sections of pages that have figures: all beside those of the peers, those over PostgreSQL, the few that sum them up. */
const fullSection = 'figures';
const postgresSection = 'figures over PostgreSQL';
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

/** The peers, by which a run of everything is known: without them it says nothing beside them. */
const peers: readonly string[] = ['nginx', 'naive', 'ledger', 'portkey'];

/**
 * Writes tables and picture into the documentation, each section of which the runs have figures; the others stay as they
 * are. Throws when the runs are not those of one commit.
 */
export function publish(runs: readonly BenchRun[]): void {
  const refusal = refusalToPublish(runs.map(({ surroundings }) => surroundings.commit));
  if (refusal !== null) throw new Error(refusal);
  const rows = figureRows(runs);
  const page = join(ownCheckout, 'docs', 'contributors', 'performance.md');
  if (rows.some(({ bySubject }) => peers.some((name) => bySubject.has(name)))) {
    replace(page, fullSection, writeComparison(runs));
    replace(join(ownCheckout, 'README.md'), shortSection, writeMainFigures(rows));
    writeFileSync(join(ownCheckout, 'docs', 'contributors', 'performance.svg'), drawPicture(rows));
  }
  const overPostgres = writeOverPostgres(rows);
  if (overPostgres !== '') replace(page, postgresSection, `${writeSurroundings(runs)}\n\n${overPostgres}`);
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
