import { describe, expect, test } from 'vitest';
import { orderOf } from '../compare/rounds.ts';
import type { BenchRun, Cell } from '../compare/run.ts';
import { drawPicture } from './draw-picture.ts';
import { figureRows } from './figures.ts';
import { judgeGoals } from './goals.ts';
import { writeOverPostgres } from './over-postgres.ts';
import { refusalToPublish, withFigures } from './publish.ts';
import { writeFigures, writeGoals, writeMainFigures, writeReport } from './write-report.ts';

const surroundings = {
  date: '2026-01-02T03:04:05.000Z',
  commit: 'abc',
  cpu: 'a CPU',
  cores: 2,
  memoryBytes: 2 ** 32,
  system: 'Linux 6',
  node: 'v26.0.0',
  nginx: null,
};

const cell = (scenario: string, subject: string, round: number, figures: Cell['figures']): Cell => ({
  scenario,
  subject,
  round,
  place: 0,
  figures,
  loads: [],
});

const runOf = (...cells: readonly Cell[]): BenchRun => ({
  surroundings,
  isQuick: false,
  absent: { nginx: 'not installed' },
  cells,
});

const costs = runOf(
  ...[100, 300, 200].map((value, round) => cell('whole', 'textgate', round, { cpuPerRequest: value })),
  ...[400, 400, 500].map((value, round) => cell('whole', 'naive', round, { cpuPerRequest: value })),
);

describe('the report of the bench', () => {
  test('shows medians, quartiles and the ratios of the medians', () => {
    expect(writeFigures(figureRows([costs]))).toBe(
      [
        '| 3 rounds | textgate | naive | ÷ naive |',
        '|---|---|---|---|',
        '| Whole answers, 32 at once: CPU per request, µs | 200 (150…250) | 400 (400…450) | 0.50 |',
      ].join('\n'),
    );
  });

  test('sums up the main figures without quartiles and ratios, and without other checkouts', () => {
    const settled = cell('settled', 'textgate', 0, { perSecond: 4_000 });
    const before = cell('whole', 'textgate-before', 0, { cpuPerRequest: 900 });
    expect(writeMainFigures(figureRows([runOf(...costs.cells, settled, before)]))).toBe(
      [
        '|  | textgate | nginx | naive | portkey |',
        '|---|---|---|---|---|',
        '| CPU of a whole answer, µs | 200 | – | 400 | – |',
      ].join('\n'),
    );
  });

  test('shows a subject without a figure as a dash, and leaves out figures without any', () => {
    const only = runOf(cell('responses', 'textgate', 0, { cpuPerEvent: 4 }), ...costs.cells);
    const [, , ...lines] = writeFigures(figureRows([only])).split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/\| 4\.00 \(4\.00…4\.00\) \| – \| – \|$/);
  });

  test('shows added time as the difference to nginx in the same round of the same run', () => {
    const first = runOf(cell('one', 'textgate', 0, { p50: 21 }), cell('one', 'nginx', 0, { p50: 20 }));
    const second = runOf(cell('one', 'textgate', 0, { p50: 33 }), cell('one', 'nginx', 0, { p50: 30 }));
    const [row] = figureRows([first, second]);
    expect(row?.bySubject.get('textgate')).toMatchObject({ median: 2, low: 1.5, high: 2.5, rounds: 2 });
  });

  test('counts added time from the direct connection where nginx is absent', () => {
    const [row] = figureRows([
      runOf(cell('one', 'textgate', 0, { p50: 21 }), cell('one', 'direct', 0, { p50: 18 })),
    ]);
    expect(row?.bySubject.get('textgate')?.median).toBe(3);
  });

  test('takes the mean of what a round found twice', () => {
    const again = runOf(...costs.cells, cell('whole', 'textgate', 0, { cpuPerRequest: 200 }));
    expect(figureRows([again])[0]?.bySubject.get('textgate')).toMatchObject({ median: 200, rounds: 3 });
    expect(figureRows([again])[0]?.bySubject.get('textgate')?.byRound.get(0)).toBe(150);
  });

  test('leaves out rounds in which nothing was measured', () => {
    const broken = runOf(...costs.cells, cell('whole', 'textgate', 3, { cpuPerRequest: Number.NaN }));
    expect(figureRows([broken])[0]?.bySubject.get('textgate')?.rounds).toBe(3);
  });

  test('shows PostgreSQL beside SQLite in a table of its own, and leaves the others as they are', () => {
    const over = cell('whole', 'postgres', 0, { cpuPerRequest: 500, serverCpuPerRequest: 700 });
    const run = runOf(...costs.cells, over, cell('one', 'postgres', 0, { p50: 21 }));
    expect(writeFigures(figureRows([run]))).toBe(writeFigures(figureRows([costs])));
    expect(writeReport([run])).toContain('\n\n### Over PostgreSQL\n\n|  | SQLite | PostgreSQL |');
    expect(writeOverPostgres(figureRows([run]))).toBe(
      [
        '|  | SQLite | PostgreSQL | PostgreSQL ÷ SQLite |',
        '|---|---|---|---|',
        '| Whole answers, 32 at once: CPU per request, µs (1 to 3 rounds) | 200 (150…250) | 500 (500…500) | 2.50, too few rounds |',
        '| Whole answers, 32 at once: CPU of PostgreSQL per request, µs (1 round) | – | 700 (700…700) | – |',
      ].join('\n'),
    );
  });

  test('shows the nodes of a database, and what its calls cost', () => {
    const nodes = { 'two.perSecond': 900, 'two.cpu': 300, 'two.serverCpu': 400, 'two.commits': 3_600 };
    const run = runOf(cell('nodes', 'nodes', 0, nodes), cell('nodes', 'nodes', 1, nodes));
    const lines = writeOverPostgres(figureRows([run])).split('\n');
    expect(lines[0]).toMatch(/^\| 2 rounds \| settled requests per second \|/);
    expect(lines[3]).toBe(
      '| 2 nodes, 1000 keys | 900 (900…900) | 300 (300…300) | 400 (400…400) | 3600 (3600…3600) | – |',
    );
    const calls = { 'settle_record.serverCpu': 77 };
    expect(writeOverPostgres(figureRows([runOf(cell('statements', 'postgres', 0, calls))]))).toContain(
      '| `settle_record` | 77 (77…77) | – | – | – |',
    );
  });

  test('shows one process and several workers in one table, each measured as a subject of its own', () => {
    const run = runOf(
      cell('workers', 'workers-1', 0, { 'workers-1.perSecond': 900 }),
      cell('workers', 'workers-4', 0, { 'workers-4.perSecond': 2_000 }),
    );
    expect(
      writeOverPostgres(figureRows([run]))
        .split('\n')
        .slice(2),
    ).toEqual([
      '| 1 process | 900 (900…900) | – | – | – | – |',
      '| 2 workers | – | – | – | – | – |',
      '| 4 workers | 2000 (2000…2000) | – | – | – | – |',
    ]);
  });

  test('has no word of PostgreSQL where it was not measured', () => {
    expect(writeReport([costs])).not.toContain('PostgreSQL');
  });

  test('judges goals as met or missed, missed ones included', () => {
    const goal = { id: 'whole.cpuPerRequest', bound: 'at most' } as const;
    const judged = judgeGoals(figureRows([costs]), [
      { ...goal, against: 'naive', limit: 0.9 },
      { ...goal, against: null, limit: 150 },
      { ...goal, against: 'portkey', limit: 0.2 },
    ]);
    expect(judged.map(({ found, isMet }) => [found, isMet])).toEqual([
      [0.5, true],
      [200, false],
    ]);
    expect(writeGoals(judged)).toContain('| ≤ 150 µs | 200 µs | **missed** |');
  });

  test('has no ratio to a subject that adds nothing to nginx, and judges the goal by the times themselves', () => {
    const added = (own: number, naive: number) =>
      runOf(
        ...Object.entries({ textgate: own, naive, nginx: 20 }).map(([name, p99]) =>
          cell('burst500', name, 0, { p99 }),
        ),
      );
    const goal = { id: 'burst500.p99', bound: 'at most', against: 'naive', limit: 1 } as const;
    const judge = (run: BenchRun) => judgeGoals(figureRows([run]), [goal]);
    expect(judge(added(24, 22)).map(({ found, isMet }) => [found, isMet])).toEqual([[2, false]]);
    expect(judge(added(24, 19)).map(({ found, isMet }) => [found, isMet])).toEqual([[Number.NaN, false]]);
    expect(judge(added(18, 19)).map(({ found, isMet }) => [found, isMet])).toEqual([[Number.NaN, true]]);
    expect(writeGoals(judge(added(24, 19)))).toContain('| ≤ 1 × naive | – | **missed** |');
  });

  test('says what was left out, and why, and how many rounds there were', () => {
    expect(writeReport([costs])).toContain('without nginx: not installed');
    expect(writeReport([costs])).toContain('commit abc: 3 rounds;');
    const uneven = runOf(...costs.cells, cell('slow-reader', 'naive', 0, { growth: 1 }));
    expect(writeReport([uneven])).toContain('commit abc: 1 to 3 rounds;');
  });

  test('says in each row how many rounds it has, where rows differ', () => {
    const uneven = runOf(...costs.cells, cell('slow-reader', 'naive', 0, { growth: 1 }));
    const [head, , ...lines] = writeFigures(figureRows([uneven])).split('\n');
    expect(head).toMatch(/^\|  \| textgate/);
    expect(lines[0]).toContain('CPU per request, µs (3 rounds) |');
    expect(lines[1]).toContain('memory growth, MB (1 round) |');
  });

  test('is published for one commit only, and not for code that is in none', () => {
    expect(refusalToPublish(['abc', 'abc'])).toBeNull();
    expect(refusalToPublish(['abc', 'abc-dirty'])).toMatch(/'abc-dirty'.*: commit, and run the bench again/);
    expect(refusalToPublish(['unknown'])).toContain('commit, and run');
    expect(refusalToPublish(['abc', 'def'])).toMatch(/\(abc, def\).*publish runs of one of them/);
  });

  test('draws a bar per subject', () => {
    expect(drawPicture(figureRows([costs])).match(/<rect/g)).toHaveLength(2);
  });

  test('replaces only the figures of a page', () => {
    const page =
      'a\n<!-- figures: written by npm run bench -- --publish -->\nold\n<!-- end of figures -->\nb';
    expect(withFigures(page, 'figures', 'new')).toBe(page.replace('old', '\nnew\n'));
    expect(() => withFigures(page, 'others', 'new')).toThrow("no section 'others'");
  });
});

test('each second round has the order of the one before it reversed, and each pair begins with another subject', () => {
  const ordersOf = (...names: readonly string[]) =>
    [0, 1, 2, 3, 4].map((round) => orderOf(names, round).join(''));
  expect(ordersOf('a', 'b')).toEqual(['ab', 'ba', 'ba', 'ab', 'ab']);
  expect(ordersOf('a', 'b', 'c')).toEqual(['abc', 'cba', 'bca', 'acb', 'cab']);
  expect(ordersOf()).toEqual(['', '', '', '', '']);
});
