import { direct } from '../subjects/direct.ts';
import { ledger, naive } from '../subjects/naive.ts';
import { nginx } from '../subjects/nginx.ts';
import { portkey } from '../subjects/portkey.ts';
import { createNodes, createPostgres, createWorkers, workerSubjects } from '../subjects/postgres.ts';
import type { RunningSubject, Subject } from '../subjects/subject.ts';
import { createTextgate, ownCheckout } from '../subjects/textgate.ts';
import { callsScenario } from './calls-scenario.ts';
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
  callsScenario,
  nodesScenario,
  workersScenario,
];

/** The subjects that the options ask for. Throws when there is none of a name. */
export function chooseSubjects({ subjects, against }: Options): readonly Subject[] {
  const all = [
    createTextgate('textgate', ownCheckout),
    createPostgres('postgres', ownCheckout),
    createNodes(ownCheckout),
    ...workerSubjects.map((subject) => createWorkers(subject, ownCheckout)),
    nginx,
    naive,
    ledger,
    portkey,
    direct,
  ];
  const unknown = subjects.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined)
    throw new Error(`--subjects ${unknown}: there is no such subject; there are ${namesOf(all)}`);
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

/**
 * The order of the subjects in a round: every second round has that of the one before it reversed (ABBA), so that what
 * drifts during two rounds falls on all alike, and each such pair begins with another subject.
 */
export function orderOf<Item>(items: readonly Item[], round: number): readonly Item[] {
  const first = items.length === 0 ? 0 : Math.floor(round / 2) % items.length;
  const order = [...items.slice(first), ...items.slice(0, first)];
  return round % 2 === 0 ? order : order.toReversed();
}

/** Whether scenarios that start a process for each run take part in a round: in every second one, as a start takes long. */
const startsProcesses = (round: number): boolean => round % 2 === 0;

/**
 * Runs all chosen scenarios on all chosen subjects, in interleaved rounds. No round is begun that would end after the
 * limit of the options if it took as long as the longest one so far.
 */
export async function runRounds(options: Options, print: (line: string) => void): Promise<BenchRun> {
  // The commit is that of the start: the sources are built then.
  const surroundings = describeSurroundings();
  const subjects = chooseSubjects(options);
  const runner: Runner = { stage: await Stage.open(), options, print, cells: [], absent: {} };
  const chosen = chooseScenarios(options).filter((scenario) => isMeasurable(runner, scenario));
  const [fresh, lasting] = [
    chosen.filter(({ isFresh }) => isFresh),
    chosen.filter(({ isFresh }) => !isFresh),
  ];
  const startedMs = performance.now();
  let longestMs = 0;
  for (let round = 0; round < options.rounds; round++) {
    const begunMs = performance.now();
    if (begunMs - startedMs + longestMs > options.minutes * 60_000) {
      print(`only ${round} of ${options.rounds} rounds fit into ${options.minutes} minutes`);
      break;
    }
    await runLasting(runner, lasting, subjects, round);
    if (startsProcesses(round))
      for (const scenario of fresh) await runFresh(runner, scenario, subjects, round);
    longestMs = Math.max(longestMs, performance.now() - begunMs);
  }
  runner.stage.close();
  const { cells, absent } = runner;
  return { surroundings, isQuick: options.isQuick, absent, cells };
}

/** The scenarios that the options ask for. Throws when a name is none. */
export function chooseScenarios({ only }: Options): readonly Scenario[] {
  const isMeant = (part: string, { name }: Scenario): boolean => name.startsWith(part);
  const unknown = only.find((part) => !scenarios.some((scenario) => isMeant(part, scenario)));
  if (unknown !== undefined)
    throw new Error(`--only ${unknown}: no scenario begins so; there are ${namesOf(scenarios)}`);
  return scenarios.filter((scenario) => only.length === 0 || only.some((part) => isMeant(part, scenario)));
}

function namesOf(items: readonly { readonly name: string }[]): string {
  return items.map(({ name }) => name).join(', ');
}

interface Runner {
  readonly stage: Stage;
  readonly options: Options;
  readonly print: (line: string) => void;
  readonly cells: Cell[];
  /** Subjects that could not be started, and scenarios without what they need, with the reason; they are not tried again. */
  readonly absent: Record<string, string>;
}

/** Whether this machine has what a scenario needs; says so if it has not. */
function isMeasurable({ absent, print }: Runner, { name, absence }: Scenario): boolean {
  const reason = absence?.() ?? null;
  if (reason === null) return true;
  absent[name] = reason;
  print(`${name} is left out: ${reason}`);
  return false;
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

/**
 * Runs a round of scenarios on subjects that are started for it and run all of them: what the compiler and the heap of one
 * process happened to do is then a part of the spread over the rounds, and does not look like a difference.
 */
async function runLasting(
  runner: Runner,
  chosen: readonly Scenario[],
  subjects: readonly Subject[],
  round: number,
): Promise<void> {
  const running = new Map<Subject, RunningSubject>();
  const wanted = subjects.filter((one) => chosen.some((scenario) => runs(scenario, one)));
  for (const subject of orderOf(wanted, round)) {
    const started = await start(runner, subject);
    if (started !== null) running.set(subject, started);
  }
  for (const scenario of chosen) {
    const fitting = orderOf(
      wanted.flatMap((subject) => {
        const one = running.get(subject);
        return one !== undefined && runs(scenario, subject) ? [{ name: subject.name, one }] : [];
      }),
      round,
    );
    for (const { one } of fitting) await scenario.warmUp(runner.stage, one, runner.options);
    // There and back, as the machine may get slower within a round, too: the mean of both is what the round found.
    for (const [place, { name, one }] of [...fitting, ...fitting.toReversed()].entries())
      await runCell(runner, scenario, one, { subject: name, round, place });
  }
  await Promise.all([...running.values()].map((one) => one.close()));
}

/** Runs a round of a scenario that has a process of its own for each run. */
async function runFresh(
  runner: Runner,
  scenario: Scenario,
  subjects: readonly Subject[],
  round: number,
): Promise<void> {
  const fitting = subjects.filter((subject) => runs(scenario, subject));
  // These have every second round, in which the order would never be reversed.
  for (const [place, subject] of orderOf(fitting, round / 2).entries()) {
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
