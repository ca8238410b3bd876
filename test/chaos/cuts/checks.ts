import { describeEvent } from '../../model/claim-log.ts';
import { readLog } from '../../model/read-log.ts';
import type { Charges } from './charges.ts';
import type { Observations } from './observations.ts';
import { overlapMs, pausesOf } from './overlaps.ts';
import { commonEvents, logOf } from './question-log.ts';

/** The questions of a key, by its name. */
interface Questions {
  readonly name: string;
  readonly questions: readonly number[];
}

/** What each key has spent, in nano-USD, has to be what its questions were charged. */
export function checkSpent(
  all: readonly Questions[],
  spent: ReadonlyMap<string, number>,
  { ofQuestions, besides }: Charges,
): readonly string[] {
  const faults = besides.map((request) => `${request} was charged, and is the end of no claim`);
  for (const { name, questions } of all) {
    const charged = questions.reduce((total, question) => total + (ofQuestions.get(question) ?? 0), 0);
    if (spent.get(name) !== charged)
      faults.push(`${name} has spent ${spent.get(name)} nano-USD, and its questions are charged ${charged}`);
  }
  return faults;
}

interface CheckedQuestions {
  readonly observations: Observations;
  readonly charges: Charges;
  /** The price of the whole answer to a question, in nano-USD. */
  readonly costOf: (question: number) => number;
  readonly isDisturbed: boolean;
}

/** What is wrong with the charges and the calls of each question. */
export function checkQuestions({
  observations,
  charges,
  costOf,
  isDisturbed,
}: CheckedQuestions): readonly string[] {
  const faults: string[] = [];
  const pauses = pausesOf(observations.ofAll);
  for (const [question, ofIt] of observations.ofQuestions) {
    const [costs, charged] = [costOf(question), charges.ofQuestions.get(question) ?? 0];
    // What was stopped behind some of its text, as no client came back to it, costs that: its clients are told so.
    const isServed = !isDisturbed || ofIt.some(({ what }) => what === 'served');
    if (charged === 0 || charged > costs || (isServed && charged !== costs))
      faults.push(`question ${question} costs ${costs} nano-USD, and ${charged} are charged`);
    const overMs = overlapMs(ofIt, pauses);
    if (overMs > 0)
      faults.push(`question ${question} was answered twice at a time, for ${overMs.toFixed(1)} ms`);
  }
  return faults;
}

/** How long the logs of questions are read, in milliseconds, and how many are read at least. */
const maxReadingMs = 240_000;
const leastRead = 100;

/** How many states there may be behind one event: a log with more takes minutes, for what many short ones show as well. */
const mostStatesBehind = 5_000;

/** What the model of claims has found in the logs of a run. */
export interface ReadLogs {
  readonly read: number;
  /** How many have too many states behind one event. */
  readonly tooLarge: number;
  readonly longestMs: number;
  readonly mostStates: number;
  readonly faults: readonly string[];
}

/** Has the model read the log of each question, in their order, as far as time allows. */
export function readLogs(
  observations: Observations,
  { ofQuestions }: Charges,
  isOnlyProcess: boolean,
): ReadLogs {
  const faults: string[] = [];
  const common = commonEvents(observations.ofAll, isOnlyProcess);
  const untilMs = performance.now() + maxReadingMs;
  let [read, tooLarge, longestMs, mostStates] = [0, 0, 0, 0];
  for (const [question, observed] of observations.ofQuestions) {
    if (performance.now() > untilMs && read >= leastRead) break;
    const log = logOf(observed, common, (ofQuestions.get(question) ?? 0) > 0 ? 1 : 0);
    const startedMs = performance.now();
    const reading = readLog(log, mostStatesBehind);
    longestMs = Math.max(longestMs, performance.now() - startedMs);
    if (reading === null) {
      tooLarge++;
      continue;
    }
    const { accepted, refused, states } = reading;
    mostStates = Math.max(mostStates, states);
    read++;
    if (refused === null) continue;
    const before = log.slice(0, accepted).map((event) => `    ${describeEvent(event)}\n`);
    faults.push(
      `question ${question}: the model does not allow that ${describeEvent(refused)}, behind\n${before.join('')}`,
    );
  }
  return { read, tooLarge, longestMs, mostStates, faults };
}

/** What was read, in a line. */
export function describeReading(
  { read, tooLarge, longestMs, mostStates, faults }: ReadLogs,
  { ofQuestions }: Observations,
): string {
  const most = `${mostStates} states and ${(longestMs / 1_000).toFixed(1)} s`;
  return `the model has read ${read} of ${ofQuestions.size} logs, of which one took ${most} at the most, and allows ${read - faults.length}; ${tooLarge} were too large`;
}
