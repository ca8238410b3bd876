import type { Clock } from './ports/clock.ts';
import type { ReportFault } from './ports/telemetry.ts';

/** How long repetitions of a fault are counted rather than logged, in milliseconds. */
const intervalMs = 10_000;

/**
 * Reports a fault that may repeat thousands of times a second at most once in ten seconds, with the count of the repeats:
 * neither hostile clients nor an outage of the database can fill the disk of the log with it.
 */
export function sumFaults(message: string, report: ReportFault, clock: Clock): (error: unknown) => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  let repeated = 0;
  return (error) => {
    const nowMs = clock.monotonicMs();
    if (nowMs < nextMs) {
      repeated++;
      return;
    }
    report(repeated === 0 ? message : `${message} (and ${repeated} times since the last such line)`, error);
    nextMs = nowMs + intervalMs;
    repeated = 0;
  };
}

/** Reports a fault once until it changes, and `null` once when it is over. */
export function reportChanges(report: (fault: string | null) => void): (fault: string | null) => void {
  let reported: string | null = null;
  return (fault) => {
    if (fault === reported) return;
    reported = fault;
    report(fault);
  };
}
