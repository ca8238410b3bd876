import type { CheckStatus } from './report.ts';

/** A rule of its protocol that an answer breaks. */
export interface BrokenRule {
  /** The last part of the check's id. */
  readonly id: string;
  readonly status: Extract<CheckStatus, 'warning' | 'fault'>;
  readonly detail: string;
  readonly advice: string;
}

/** The advice for what the gateway can read, and writes as it should be for its own clients. */
const mended = "Nothing to change: the gateway's own answers do not have this fault.";

/** A rule that the gateway mends for its clients, if it is broken; else nothing. */
export function mendedRule(id: string, isBroken: boolean, detail: string): readonly BrokenRule[] {
  return isBroken ? [{ id, status: 'warning', detail, advice: mended }] : [];
}

/** A rule whose breach fails the answer. */
export function faultRule(id: string, detail: string, advice: string): BrokenRule {
  return { id, status: 'fault', detail, advice };
}

/** How many names of a list are written out. */
const maxNames = 4;

/** The first names of a list, and how many follow. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - maxNames;
  return rest <= 0 ? names.join(', ') : `${names.slice(0, maxNames).join(', ')} and ${rest} more`;
}
