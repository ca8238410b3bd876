import { inTime } from '../../domain/time-limit.ts';
import type { Charge } from '../money/charge.ts';
import type { Ports } from '../ports.ts';
import type { ExchangeResult } from '../results.ts';
import type { ClaimedRun } from './claimed-run.ts';

/** What a record was closed with. */
export interface Closed {
  readonly charge: Charge;
  /** Whether it is known to be in the database. */
  readonly isBooked: boolean;
}

/** How long the end of a request waits for its claim to be free, in milliseconds; the sweep frees it later then. */
const maxFreeingMs = 1_000;

/** Whether a request leaves its claim free, because it has no answer and cost nothing: it may run anew. */
export function comesToNothing({ kind }: ExchangeResult, chargeNanos: number): boolean {
  return kind !== 'finished' && chargeNanos === 0;
}

/**
 * Ends a run behind the settlement of its request. Returns whether its answer may be told: that of a request which was begun
 * and is not charged may not, since another process may run its claim by now.
 */
export async function endClaim(
  run: ClaimedRun,
  result: ExchangeResult,
  { wasBegun, closed }: { readonly wasBegun: boolean; readonly closed: Closed | null },
  { claims, clock, telemetry }: Pick<Ports, 'claims' | 'clock' | 'telemetry'>,
): Promise<boolean> {
  const { claim } = run;
  if (claim === null) {
    if (result.kind === 'finished') claims.keep(run);
    else run.free();
    return true;
  }
  if (closed?.isBooked === true && result.kind === 'finished') {
    claims.keep(run);
    return true;
  }
  // A settlement that failed may be made later, and finds its claim then. Its own row first: those who wait look for it.
  if (run.isStored && !wasBegun) {
    const freeing = claims.store.freeClaim(claim, run.requestId);
    freeing.catch((error: unknown) =>
      telemetry.fault('a claim could not be freed: it is freed later', error),
    );
    await inTime(freeing, maxFreeingMs, clock);
  }
  run.free();
  return closed?.isBooked === true || result.kind !== 'finished';
}
