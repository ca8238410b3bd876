/** What a section gets from the runner. */
interface SectionInput {
  /** The seed of all chance in it; the runner prints it, and `--seed` repeats it. */
  readonly seed: number;
  /** How much more is tried than by default: 1 is what fits into a few minutes on two cores. */
  readonly scale: number;
  /** Writes a line of progress. */
  readonly log: (line: string) => void;
}

/** What a section has found. */
export interface SectionResult {
  /** How many things were tried, each of which could have failed. */
  readonly cases: number;
  /** What else was counted or measured, in the order in which it is shown: label and value. */
  readonly facts: readonly (readonly [label: string, value: string | number])[];
  /** Every broken bound in a sentence that tells the case; empty if all were kept. */
  readonly faults: readonly string[];
}

/**
 * One part of the scorecard: a kind of trouble, against gateway processes that the section starts and ends itself. It lies
 * in `sections/`, in a file of its name, and is exported as `section`. It rejects only if it could not be run.
 */
export interface Section {
  /** The name of its file, and what the command line calls it. */
  readonly name: string;
  readonly title: string;
  /** What is tried and what must hold, in a sentence or two for the published page. */
  readonly about: string;
  readonly run: (input: SectionInput) => Promise<SectionResult>;
}
