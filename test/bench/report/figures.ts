import type { BenchRun } from '../compare/run.ts';
import type { Figure } from '../compare/scenario.ts';
import { scenarios } from '../compare/rounds.ts';
import { addedPerRound, mean, summarize } from './statistics.ts';
import type { Summary } from './statistics.ts';

/** A figure of a scenario with what was found for each subject. */
export interface FigureRow {
  /** `scenario.figure`, as goals name it. */
  readonly id: string;
  readonly scenario: string;
  readonly figure: Figure;
  readonly bySubject: ReadonlyMap<string, Summary>;
}

/** The subject over which added time is counted, and the one that stands in where it is absent. */
const bases = ['nginx', 'direct'];

/** How many rounds of one run keep their numbers apart from those of the next run. */
const roundsPerRun = 1_000;

/** Sums up the rounds of one run or of several runs. Figures without any value are left out. */
export function figureRows(runs: readonly BenchRun[]): readonly FigureRow[] {
  return scenarios.flatMap(({ name, title, figures }) =>
    figures.flatMap((figure) => {
      const found = valuesOf(runs, name, figure.name);
      const base = bases.map((subject) => found.get(subject)).find((values) => values !== undefined);
      const summaries = [...found].flatMap(([subject, values]): readonly [string, Summary][] => {
        if (!figure.isAdded) return [[subject, summarize(values)]];
        return base === undefined ? [] : [[subject, summarize(addedPerRound(values, base))]];
      });
      const row = { id: `${name}.${figure.name}`, scenario: title, figure, bySubject: new Map(summaries) };
      return summaries.length === 0 ? [] : [row];
    }),
  );
}

/**
 * The values of a figure by subject and round: the mean where a round ran it twice. Rounds without a value, as when all
 * answers failed, are left out.
 */
function valuesOf(
  runs: readonly BenchRun[],
  scenario: string,
  figure: string,
): ReadonlyMap<string, ReadonlyMap<number, number>> {
  const found = new Map<string, Map<number, number[]>>();
  for (const [index, { cells }] of runs.entries())
    for (const cell of cells) {
      const value = cell.figures[figure];
      if (cell.scenario !== scenario || typeof value !== 'number' || !Number.isFinite(value)) continue;
      const rounds = found.get(cell.subject) ?? new Map<number, number[]>();
      const round = index * roundsPerRun + cell.round;
      rounds.set(round, [...(rounds.get(round) ?? []), value]);
      found.set(cell.subject, rounds);
    }
  return new Map(
    [...found].map(([subject, rounds]) => [
      subject,
      new Map([...rounds].map(([round, values]) => [round, mean(values)])),
    ]),
  );
}
