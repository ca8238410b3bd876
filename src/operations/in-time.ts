import type { Clock } from '../domain/ports/clock.ts';

/** How long the database and the readiness are waited for, in milliseconds: operators ask most when they hang. */
const patienceMs = 2_000;

/**
 * How long the other workers are waited for, in milliseconds: longer than the primary process waits for each of them, as one
 * that hangs would otherwise leave the others out, too.
 */
export const workersPatienceMs = 2 * patienceMs;

/** The result of some work; `null` if it fails or takes longer than the patience, in milliseconds. */
export function inTime<Result>(
  work: Promise<Result>,
  clock: Clock,
  maxMs: number = patienceMs,
): Promise<Result | null> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(maxMs, () => resolve(null));
    const end = (result: Result | null): void => {
      cancel();
      resolve(result);
    };
    work.then(end, () => end(null));
  });
}
