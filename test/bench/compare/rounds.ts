import { direct } from '../subjects/direct.ts';
import { naive } from '../subjects/naive.ts';
import { nginx } from '../subjects/nginx.ts';
import { portkey } from '../subjects/portkey.ts';
import { createNodes, createPostgres, createWorkers, workerSubjects } from '../subjects/postgres.ts';
import type { RunningSubject, Subject } from '../subjects/subject.ts';
import { createTextgate, ownCheckout } from '../subjects/textgate.ts';
import { cliScenario } from './cli-scenario.ts';
import { freshScenarios } from './fresh-scenarios.ts';
import { loadScenarios } from './load-scenarios.ts';
import { nodesScenario } from './nodes-scenario.ts';
import type { Options } from './options.ts';
import { doubtsOf } from './run.ts';
import type { BenchRun, Cell } from './run.ts';
import type { Scenario } from './scenario.ts';
import { statementsScenario } from './statements-scenario.ts';
import { Stage } from './stage.ts';
import { describeSurroundings } from './surroundings.ts';
import { workersScenario } from './workers-scenario.ts';

/** All scenarios, in the order in which they run: memory after whole answers is read before anything else runs. */
export const scenarios: readonly Scenario[] = [
  ...loadScenarios,
  cliScenario,
  statementsScenario,
  ...freshScenarios,
  nodesScenario,
  workersScenario,
];

/** The subjects that the options ask for. */
export function chooseSubjects({ subjects, against }: Options): readonly Subject[] {
  const all = [
    createTextgate('textgate', ownCheckout),
    createPostgres('postgres', ownCheckout),
    createNodes(ownCheckout),
    ...workerSubjects.map((subject) => createWorkers(subject, ownCheckout)),
    nginx,
    naive,
    portkey,
    direct,
  ];
  const isChosen = (name: string): boolean => subjects.length === 0 || subjects.includes(name);
  const before = against === null ? [] : beforeOf(against).filter(([name]) => isChosen(name));
  return [...all.filter(({ name }) => isChosen(name)), ...before.map(([, subject]) => subject)];
}

/** What another checkout is measured as, by the name of what is measured of this one. */
function beforeOf(checkout: string): readonly (readonly [string, Subject])[] {
  return [
    ['textgate', createTextgate('textgate-before', checkout)],
    ['postgres', createPostgres('postgres-before', checkout)],
  ];
}

/** Whether a subject runs a scenario. */
function runs(scenario: Scenario, subject: Subject): boolean {
  return (subject.only === null || subject.only.includes(scenario.name)) && scenario.fits(subject);
}

/** The subjects of a round, each round beginning with another one, so that none always runs first. */
export function rotated<Item>(items: readonly Item[], round: number): readonly Item[] {
  const first = items.length === 0 ? 0 : round % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

/** Runs all chosen scenarios on all chosen subjects, in interleaved rounds. */
export async function runRounds(options: Options, print: (line: string) => void): Promise<BenchRun> {
  // The commit is that of the start: the sources are built then.
  const surroundings = describeSurroundings();
  const runner: Runner = { stage: await Stage.open(), options, print, cells: [], absent: {} };
  const subjects = chooseSubjects(options);
  const chosen = scenarios.filter(
    ({ name }) => options.only.length === 0 || options.only.some((part) => name.startsWith(part)),
  );
  await runWarm(
    runner,
    chosen.filter(({ isFresh }) => !isFresh),
    subjects,
  );
  for (const scenario of chosen.filter(({ isFresh }) => isFresh)) await runFresh(runner, scenario, subjects);
  runner.stage.close();
  const { cells, absent } = runner;
  return { surroundings, isQuick: options.isQuick, absent, cells };
}

interface Runner {
  readonly stage: Stage;
  readonly options: Options;
  readonly print: (line: string) => void;
  readonly cells: Cell[];
  /** Subjects that could not be started, with the reason; they are not tried again. */
  readonly absent: Record<string, string>;
}

/** Starts a subject; null if it can't be started here. */
async function start({ stage, absent, print }: Runner, subject: Subject): Promise<RunningSubject | null> {
  if (absent[subject.name] !== undefined) return null;
  try {
    return await stage.start(subject);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    absent[subject.name] = reason;
    print(`${subject.name} is left out: ${reason}`);
    return null;
  }
}

/** Runs scenarios on subjects that run all the time. */
async function runWarm(
  runner: Runner,
  chosen: readonly Scenario[],
  subjects: readonly Subject[],
): Promise<void> {
  const running = new Map<Subject, RunningSubject>();
  for (const subject of subjects.filter((one) => chosen.some((scenario) => runs(scenario, one)))) {
    const started = await start(runner, subject);
    if (started !== null) running.set(subject, started);
  }
  for (const scenario of chosen) {
    const fitting = [...running].filter(([subject]) => runs(scenario, subject));
    for (const [, one] of fitting) await scenario.warmUp(runner.stage, one, runner.options);
    for (let round = 0; round < runner.options.rounds; round++)
      for (const [place, [subject, one]] of rotated(fitting, round).entries())
        await runCell(runner, scenario, one, { subject: subject.name, round, place });
  }
  await Promise.all([...running.values()].map((one) => one.close()));
}

/** Runs a scenario that has a process for each run, in half as many rounds. */
async function runFresh(runner: Runner, scenario: Scenario, subjects: readonly Subject[]): Promise<void> {
  const fitting = subjects.filter((subject) => runs(scenario, subject));
  for (let round = 0; round < Math.ceil(runner.options.rounds / 2); round++)
    for (const [place, subject] of rotated(fitting, round).entries()) {
      const one = await start(runner, subject);
      if (one === null) continue;
      await runCell(runner, scenario, one, { subject: subject.name, round, place });
      await one.close();
    }
}

async function runCell(
  { stage, options, print, cells }: Runner,
  scenario: Scenario,
  running: RunningSubject,
  where: Pick<Cell, 'subject' | 'round' | 'place'>,
): Promise<void> {
  const findings = await scenario.run(stage, running, options, { name: where.subject });
  const cell = { scenario: scenario.name, ...where, ...findings };
  cells.push(cell);
  const figures = Object.entries(findings.figures).map(([name, value]) => `${name} ${value.toFixed(2)}`);
  print(`${scenario.name} ${where.round + 1} ${where.subject}: ${figures.join(', ')}`);
  for (const doubt of doubtsOf(cell)) print(`  ${doubt}`);
}
