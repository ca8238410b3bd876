import { nameInGrid } from '../compare/grid.ts';
import type { Grid } from '../compare/grid.ts';
import { nodesGrid } from '../compare/nodes-scenario.ts';
import { statementsGrid } from '../compare/statements-scenario.ts';
import { workersGrid } from '../compare/workers-scenario.ts';
import type { FigureRow } from './figures.ts';
import { table, titleRounds, writeRange, writeRatio, writeSummary } from './tables.ts';

/** The subjects that are held against each other, with the titles of their columns. */
const columns = new Map([
  ['textgate', 'SQLite'],
  ['postgres', 'PostgreSQL'],
  ['postgres-before', 'PostgreSQL before'],
]);

/** The tables of the gateway over PostgreSQL; nothing where it was not measured. */
export function writeOverPostgres(rows: readonly FigureRow[]): string {
  return [
    writeEngines(rows),
    writeGrid(rows, nodesGrid, () => 'nodes'),
    writeGrid(rows, workersGrid, ({ name }) => name),
    writeGrid(rows, statementsGrid, () => 'postgres'),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The same gateway on the two engines. */
function writeEngines(rows: readonly FigureRow[]): string {
  const isInGrid = ({ id }: FigureRow): boolean =>
    [nodesGrid, workersGrid, statementsGrid].some(({ scenario }) => id.startsWith(`${scenario}.`));
  const chosen = rows.filter((row) => row.bySubject.has('postgres') && !isInGrid(row));
  const present = [...columns.keys()].filter((name) => chosen.some(({ bySubject }) => bySubject.has(name)));
  const rounds = titleRounds(chosen, present);
  const line = (row: FigureRow): string => {
    const cells = present.map((name) => writeSummary(row.bySubject.get(name), row.figure.digits));
    return `| ${[rounds.title(row), ...cells, writeRatio(row, 'postgres', 'textgate')].join(' | ')} |`;
  };
  if (chosen.length === 0) return '';
  const head = [rounds.head, ...present.map((name) => columns.get(name) ?? name), 'PostgreSQL ÷ SQLite'];
  return table(head, chosen.map(line));
}

/** A scenario with a table of its own, each row measured on one subject. */
function writeGrid(
  rows: readonly FigureRow[],
  grid: Grid,
  subjectOf: (row: Grid['rows'][number]) => string,
): string {
  const found = (row: Grid['rows'][number], column: Grid['columns'][number]) =>
    rows
      .find(({ id }) => id === `${grid.scenario}.${nameInGrid(row, column)}`)
      ?.bySubject.get(subjectOf(row));
  const summaries = grid.rows.map((row) => grid.columns.map((column) => found(row, column)));
  const counts = summaries.flat().flatMap((summary) => summary?.rounds ?? []);
  if (counts.length === 0) return '';
  const lines = grid.rows.map(({ title }, at) => {
    const cells = grid.columns.map(({ digits }, column) => writeSummary(summaries[at]?.[column], digits));
    return `| ${[title, ...cells].join(' | ')} |`;
  });
  return table([writeRange(counts), ...grid.columns.map(({ title }) => title)], lines);
}
