import type { FigureRow } from './figures.ts';
import { compareRounds } from './statistics.ts';
import type { Summary } from './statistics.ts';

/** A table in Markdown; nothing without lines. */
export function table(head: readonly string[], lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...lines].join('\n');
}

/** The median, in brackets the quartiles. */
export function writeSummary(summary: Summary | undefined, digits: number): string {
  if (summary === undefined) return '–';
  const { median, low, high } = summary;
  return `${median.toFixed(digits)} (${low.toFixed(digits)}…${high.toFixed(digits)})`;
}

/**
 * How many times the base the first one's median is, and whether that is more than noise. Added times have no ratio: the
 * base adds nothing to itself.
 */
export function writeRatio({ figure, bySubject }: FigureRow, subject: string, base: string): string {
  const [own, other] = [subject, base].map((name) => bySubject.get(name));
  if (figure.isAdded || own === undefined || other === undefined || other.median <= 0) return '–';
  const ratio = (own.median / other.median).toFixed(2);
  const verdict = compareRounds(own, other);
  return verdict === 'different' ? ratio : `${ratio}, ${verdict}`;
}

/** Writes how many rounds the figures are from: in the head of the table if all are from as many, else in each row. */
export function titleRounds(rows: readonly FigureRow[], subjects: readonly string[]) {
  const roundsOf = ({ bySubject }: FigureRow): string =>
    writeRange(subjects.flatMap((name) => bySubject.get(name)?.rounds ?? []));
  const isOne = new Set(rows.map(roundsOf)).size === 1;
  return {
    head: isOne && rows[0] !== undefined ? roundsOf(rows[0]) : '',
    title(row: FigureRow): string {
      const title = `${row.scenario}: ${row.figure.title}, ${row.figure.unit}`;
      return isOne ? title : `${title} (${roundsOf(row)})`;
    },
  };
}

/** How many rounds there were, from the least to the most. */
export function writeRange(counts: readonly number[]): string {
  if (counts.length === 0) return 'no rounds';
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? `${most} ${most === 1 ? 'round' : 'rounds'}` : `${least} to ${most} rounds`;
}
