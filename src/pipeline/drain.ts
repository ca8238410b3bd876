import type { Clock } from '../domain/ports/clock.ts';
import { within } from '../domain/within.ts';
import type { InFlight } from './in-flight.ts';

/** How long interrupted requests may take to settle, in milliseconds. */
const settleGraceMs = 5_000;

/** Stops accepting requests. Running ones get the drain time; the rest are then interrupted and settled. */
export async function drain(inFlight: InFlight, drainMs: number, clock: Clock): Promise<void> {
  if (await within(inFlight.drained(), drainMs, clock)) return;
  inFlight.interruptAll('drained');
  await awaitSettlements(inFlight, clock);
}

/** How long settling may take in a process that ends after an uncaught error, in milliseconds. */
const crashGraceMs = 3_000;

/** Stops accepting and ends every running request with an error at once; resolves when they are settled. */
export async function interruptForCrash(inFlight: InFlight, clock: Clock): Promise<void> {
  const drained = inFlight.drained();
  inFlight.interruptAll('crashed');
  await within(drained, crashGraceMs, clock);
}

/** Waits for the last settlements, up to a grace period: the database must not be closed before them. */
export async function awaitSettlements(inFlight: InFlight, clock: Clock): Promise<void> {
  await within(inFlight.drained(), settleGraceMs, clock);
}
