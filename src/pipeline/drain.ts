import type { Clock } from '../domain/ports.ts';
import type { InFlight } from './in-flight.ts';

/** How long interrupted requests may take to settle, in milliseconds. */
const settleGraceMs = 5_000;

/** Stops accepting. Running requests get the drain time; those that are left are interrupted, and settle. */
export async function drain(inFlight: InFlight, drainMs: number, clock: Clock): Promise<void> {
  if (await within(inFlight.drained(), drainMs, clock)) return;
  inFlight.interruptAll('drained');
  await awaitSettlements(inFlight, clock);
}

/** Waits for the last settlements, within their grace: a database must not be closed under them. */
export async function awaitSettlements(inFlight: InFlight, clock: Clock): Promise<void> {
  await within(inFlight.drained(), settleGraceMs, clock);
}

/** Whether something is done within a time. */
function within(done: Promise<void>, limitMs: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(limitMs, () => resolve(false));
    void done.then(() => {
      cancel();
      resolve(true);
    });
  });
}
