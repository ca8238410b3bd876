/**
 * The result of a check:
 * - `ok`: as it should be;
 * - `warning`: the gateway serves its clients all the same, but an operator should know;
 * - `fault`: requests fail, or an answer that was cut off looks complete;
 * - `skipped`: the check does not apply, or an earlier fault prevents it.
 */
type CheckStatus = 'ok' | 'warning' | 'fault' | 'skipped';

/** One check of an upstream. */
export interface Check {
  /** What was checked, such as `tls`, `chat.stream` or `chat.stream.missing_done`; part of the JSON output. */
  readonly id: string;
  readonly status: CheckStatus;
  /** What was found, in a few words. */
  readonly detail: string;
  /** For a warning or a fault: the sentence that says what to change, unless the next check has it. */
  readonly advice: string | null;
  /** How long the check took, in milliseconds; `null` for one without a call of its own. */
  readonly ms: number | null;
}

/** All checks of one upstream, in the order in which they were made. */
export interface UpstreamReport {
  readonly name: string;
  /** The base URL without its query, which may hold a key. */
  readonly url: string;
  /** The worst status of its checks. */
  readonly status: Exclude<CheckStatus, 'skipped'>;
  readonly checks: readonly Check[];
}

/** A check that found nothing wrong. */
export function ok(id: string, detail: string, ms: number | null = null): Check {
  return { id, status: 'ok', detail, advice: null, ms };
}

export function warning(id: string, detail: string, advice: string, ms: number | null = null): Check {
  return { id, status: 'warning', detail, advice, ms };
}

export function fault(id: string, detail: string, advice: string | null, ms: number | null = null): Check {
  return { id, status: 'fault', detail, advice, ms };
}

export function skipped(id: string, detail: string): Check {
  return { id, status: 'skipped', detail, advice: null, ms: null };
}

/** The worst status among checks. */
export function worstOf(checks: readonly Pick<Check, 'status'>[]): UpstreamReport['status'] {
  if (checks.some(({ status }) => status === 'fault')) return 'fault';
  return checks.some(({ status }) => status === 'warning') ? 'warning' : 'ok';
}

/** The advice for what the gateway can read, and writes as it should be for its own clients. */
const mended = "Nothing to change: the gateway's own answers do not have this fault.";

/** A warning of a rule, if it is broken; else nothing. Without an advice, it is a rule that the gateway mends for its clients. */
export function warnIf(rule: string, isBroken: boolean, detail: string, advice = mended): readonly Check[] {
  return isBroken ? [warning(rule, detail, advice)] : [];
}

/** How many names of a list are written out. */
const maxNames = 4;

/** The first names of a list, and how many follow. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - maxNames;
  return rest <= 0 ? names.join(', ') : `${names.slice(0, maxNames).join(', ')} and ${rest} more`;
}
