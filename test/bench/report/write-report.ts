import { doubtsOf } from '../compare/run.ts';
import type { BenchRun, Cell } from '../compare/run.ts';
import { figureRows } from './figures.ts';
import type { FigureRow } from './figures.ts';
import { judgeGoals } from './goals.ts';
import type { JudgedGoal } from './goals.ts';
import { writeOverPostgres } from './over-postgres.ts';
import { table, titleRounds, writeRange, writeRatio, writeSummary } from './tables.ts';

/** The order of the columns; what is not in a run has none. */
const columns = ['textgate', 'textgate-before', 'nginx', 'naive', 'ledger', 'portkey'];

/** Writes tables in Markdown: the machine, all figures, the goals, and what was measured over PostgreSQL. */
export function writeReport(runs: readonly BenchRun[]): string {
  const over = writeOverPostgres(figureRows(runs));
  return [writeComparison(runs), ...(over === '' ? [] : ['### Over PostgreSQL', over])].join('\n\n');
}

/** The machine, the figures beside those of the peers, and the goals. */
export function writeComparison(runs: readonly BenchRun[]): string {
  const rows = figureRows(runs);
  return [writeSurroundings(runs), writeFigures(rows), writeGoals(judgeGoals(rows))].join('\n\n');
}

/** The figures: medians, in brackets the quartiles of the rounds, and the ratios of the medians. */
export function writeFigures(allRows: readonly FigureRow[]): string {
  const rows = allRows.filter(({ bySubject }) => columns.some((name) => bySubject.has(name)));
  const present = columns.filter((name) => rows.some(({ bySubject }) => bySubject.has(name)));
  const others = present.includes('textgate') ? present.filter((name) => name !== 'textgate') : [];
  const rounds = titleRounds(rows, present);
  const line = (row: FigureRow): string => {
    const { figure, bySubject } = row;
    const cells = present.map((name) => writeSummary(bySubject.get(name), figure.digits));
    const ratios = others.map((name) => writeRatio(row, 'textgate', name));
    return `| ${[rounds.title(row), ...cells, ...ratios].join(' | ')} |`;
  };
  return table([rounds.head, ...present, ...others.map((name) => `÷ ${name}`)], rows.map(line));
}

/** The figures of the README by their ids, with titles that are short enough for a narrow table. */
const mainFigures: readonly (readonly [id: string, title: string])[] = [
  ['whole.cpuPerRequest', 'CPU of a whole answer, µs'],
  ['blast8.cpuPerEvent', 'CPU of a streamed event, 8 at once, µs'],
  ['open.perStream', 'memory of an open stream, KB'],
];

/** The columns of the README: the others say something to who works on this gateway. */
const mainColumns = ['textgate', 'nginx', 'naive', 'portkey'];

/** The few figures that sum up the others: medians alone, without quartiles and ratios. */
export function writeMainFigures(rows: readonly FigureRow[]): string {
  const lines = mainFigures.flatMap(([id, title]) =>
    rows
      .filter((row) => row.id === id)
      .map(({ figure, bySubject }) => {
        const cells = mainColumns.map((name) => bySubject.get(name)?.median.toFixed(figure.digits) ?? '–');
        return `| ${[title, ...cells].join(' | ')} |`;
      }),
  );
  return table(['', ...mainColumns], lines);
}

/** The goals, met or missed. */
export function writeGoals(judged: readonly JudgedGoal[]): string {
  const line = ({ row, against, bound, limit, found, isMet }: JudgedGoal): string => {
    const { scenario, figure } = row;
    const unit = against === null ? ` ${figure.unit}` : ` × ${against}`;
    const value = Number.isNaN(found) ? '–' : `${found.toFixed(against === null ? figure.digits : 2)}${unit}`;
    const sign = bound === 'at most' ? '≤' : '≥';
    const verdict = isMet ? 'met' : '**missed**';
    return `| ${scenario}: ${figure.title} | ${sign} ${limit}${unit} | ${value} | ${verdict} |`;
  };
  return table(['', 'goal', 'found', ''], judged.map(line));
}

/** When, on what and how often it was measured, a line for each run. */
export function writeSurroundings(runs: readonly BenchRun[]): string {
  const lines = runs.map(({ surroundings, isQuick, cells, absent }) => {
    const { date, commit, cpu, cores, memoryBytes, system, node, nginx } = surroundings;
    const doubts = cells.flatMap(doubtsOf).length;
    return [
      `- ${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}${isQuick ? ', a quick run' : ''}: ${writeRounds(cells)}`,
      `${cores} cores of ${cpu}, ${(memoryBytes / 2 ** 30).toFixed(0)} GiB, ${system}`,
      `Node ${node}${nginx === null ? '' : `, nginx ${nginx}`}`,
      ...Object.entries(absent).map(([name, reason]) => `without ${name}: ${reason}`),
      ...(doubts === 0 ? [] : [`doubts about single loads, which are in the raw data: ${doubts}`]),
    ].join('; ');
  });
  return lines.join('\n');
}

/** How many rounds the scenarios had; those that start processes have fewer. */
function writeRounds(cells: readonly Cell[]): string {
  const counts = Object.values(Object.groupBy(cells, ({ scenario }) => scenario)).map(
    (found = []) => Math.max(...found.map(({ round }) => round)) + 1,
  );
  return writeRange(counts);
}
