import type { Clock } from '../domain/ports/clock.ts';
import { within } from '../domain/within.ts';
import type { InFlight } from './in-flight.ts';

/** How long interrupted requests may take to settle, in milliseconds. */
const settleGraceMs = 5_000;

/** How long settling may take in a process that ends after an uncaught error, in milliseconds. */
const crashGraceMs = 3_000;

/** How long settling may take after that when tokens are no longer counted but estimated, in milliseconds. */
const estimateGraceMs = 500;

/** The counting of tokens. Once it is closed, texts that waited for their count are charged by an estimate. */
interface Counting {
  readonly isCounting: boolean;
  close(): Promise<void>;
}

/** Stops accepting requests. Running ones get the drain time; the rest are then interrupted and settled. */
export async function drain(
  inFlight: InFlight,
  counting: Counting,
  drainMs: number,
  clock: Clock,
): Promise<void> {
  if (await within(inFlight.drained(), drainMs, clock)) return;
  inFlight.interruptAll('drained');
  await settleAll(inFlight, counting, settleGraceMs, clock);
}

/** Stops accepting and ends every running request with an error at once; resolves when they are settled. */
export async function interruptForCrash(inFlight: InFlight, counting: Counting, clock: Clock): Promise<void> {
  const settled = settleAll(inFlight, counting, crashGraceMs, clock);
  inFlight.interruptAll('crashed');
  await settled;
}

/** A count that takes too long must not leave a record open, which would not be charged. */
async function settleAll(
  inFlight: InFlight,
  counting: Counting,
  graceMs: number,
  clock: Clock,
): Promise<void> {
  if ((await within(inFlight.drained(), graceMs, clock)) || !counting.isCounting) return;
  await counting.close();
  await within(inFlight.drained(), estimateGraceMs, clock);
}

/** Waits for the last settlements, up to a grace period: the database must not be closed before them. */
export async function awaitSettlements(inFlight: InFlight, clock: Clock): Promise<void> {
  await within(inFlight.drained(), settleGraceMs, clock);
}
