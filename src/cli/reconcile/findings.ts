import type { ReconciledLine, Reconciliation } from './compare.ts';
import type { DayRange, OurUsage } from './our-usage.ts';
import type { TheirUsage } from './read-export.ts';

/** All that a report says. */
export interface Findings {
  readonly upstream: string;
  readonly range: DayRange;
  /** A share of 1. */
  readonly tolerance: number;
  readonly theirs: TheirUsage;
  readonly ours: OurUsage;
  readonly found: Reconciliation;
  /** Whether the last day is over: the provider and the records may go on with it. */
  readonly isOver: boolean;
}

/** The lines of single days. */
export function dayLinesOf({ lines }: Reconciliation): readonly ReconciledLine[] {
  return lines.filter(({ day }) => day !== null);
}

/** The lines of all days of a model. */
export function wholeLinesOf({ lines }: Reconciliation): readonly ReconciledLine[] {
  return lines.filter(({ day }) => day === null);
}

/** Whether both sides agree everywhere. */
export function agrees({ found }: Findings): boolean {
  return found.lines.every((line) => line.agrees);
}

/** Adds up numbers. */
export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
