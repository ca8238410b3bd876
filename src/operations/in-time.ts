import type { Clock } from '../domain/ports/clock.ts';

/** How long the database and the readiness are waited for, in milliseconds: operators ask most when they hang. */
const patienceMs = 2_000;

/** The result of some work; `null` if it fails or takes longer than the patience. */
export function inTime<Result>(work: Promise<Result>, clock: Clock): Promise<Result | null> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(patienceMs, () => resolve(null));
    const end = (result: Result | null): void => {
      cancel();
      resolve(result);
    };
    work.then(end, () => end(null));
  });
}
