import type { Charges } from './charges.ts';
import type { Observations } from './observations.ts';
import { overlapMs, pausesOf } from './overlaps.ts';

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
