import type { Clock } from '../domain/ports/clock.ts';
import { within } from '../domain/within.ts';
import type { InFlight } from './in-flight.ts';

/** How long interrupted requests may take to settle, in milliseconds. */
const settleGraceMs = 5_000;

/** Stops accepting. Running requests get the drain time; those that are left are interrupted, and settle. */
export async function drain(inFlight: InFlight, drainMs: number, clock: Clock): Promise<void> {
  if (await within(inFlight.drained(), drainMs, clock)) return;
  inFlight.interruptAll('drained');
  await awaitSettlements(inFlight, clock);
}

/** How long that may take in a process that has to end, in milliseconds. */
const crashGraceMs = 3_000;

/** Stops accepting and ends every running request with an error at once; resolves when they are settled. */
export async function interruptForCrash(inFlight: InFlight, clock: Clock): Promise<void> {
  const drained = inFlight.drained();
  inFlight.interruptAll('crashed');
  await within(drained, crashGraceMs, clock);
}

/** Waits for the last settlements, within their grace: a database must not be closed under them. */
export async function awaitSettlements(inFlight: InFlight, clock: Clock): Promise<void> {
  await within(inFlight.drained(), settleGraceMs, clock);
}
