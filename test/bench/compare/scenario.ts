import type { RunningSubject, Subject } from '../subjects/subject.ts';
import type { Measured, Stage } from './stage.ts';

/** A number that a scenario finds for every subject. */
export interface Figure {
  /** Its name in the raw data. */
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** How many digits after the point are shown. */
  readonly digits: number;
  /** Shown as what a subject adds to nginx in the same round, rather than by itself. */
  readonly isAdded: boolean;
}

/** A figure that is shown by itself. */
export function plainFigure(name: string, title: string, unit: string, digits: number): Figure {
  return { name, title, unit, digits, isAdded: false };
}

/** What one run of a scenario found. */
export interface Findings {
  /** Its figures by their names. */
  readonly figures: Readonly<Record<string, number>>;
  /** Its loads as they were measured, for the raw data and for what was wrong. */
  readonly loads: readonly Measured[];
  /** What was wrong besides the loads, in words. */
  readonly faults?: readonly string[];
}

/** What of a normal run's requests a quick one sends. */
export const quickShare = 0.25;

/** How much is measured: a quick run has fewer requests, and less to say. */
export interface Amount {
  readonly isQuick: boolean;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Whether each run has a process of its own, because memory or the start is measured. */
  readonly isFresh: boolean;
  /** Why no subject can do it on this machine, in words; null, or not there, where it can be measured. */
  readonly absence?: () => string | null;
  /** Whether a subject can do it at all. */
  fits(subject: Subject): boolean;
  /** Makes a running subject ready for all rounds. */
  warmUp(stage: Stage, running: RunningSubject, amount: Amount): Promise<void>;
  run(
    stage: Stage,
    running: RunningSubject,
    amount: Amount,
    subject: Pick<Subject, 'name'>,
  ): Promise<Findings>;
}
