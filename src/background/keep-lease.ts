import type { Clock } from '../domain/ports/clock.ts';
import type { Lease, RecordLeases } from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sumFaults } from '../domain/summed-fault.ts';
import { repeat } from './repeat.ts';

/** How often the lease of this process run is renewed, and those of the others are read, in milliseconds. */
const renewMs = 10_000;

/** How many times in a row a lease must be found not renewed before it is ended: after 30 seconds. */
const missedRenewals = 3;

/** The renewing of a lease. */
export interface LeaseKeeper {
  /** Resolves when nothing is renewed any more. */
  stop(): Promise<void>;
}

/**
 * Renews the lease of this process run, so that no other process closes its open records, and ends the leases that are
 * not renewed any more, so that the sweep closes the records behind them.
 *
 * Leases hold a count of renewals rather than a time, and whether one is over is judged by how often this process found
 * the count unchanged. So no clock of another machine matters, and none that is set. Only readings in a row count: while
 * the database is away no owner can renew, and every count begins anew once it is back.
 */
export function keepLease(leases: RecordLeases, clock: Clock, onFault: ReportFault): LeaseKeeper {
  const stopping = new AbortController();
  const renewalFailed = sumFaults('the lease on open records could not be renewed', onFault, clock);
  /** The leases of other owners as they were read last, and how many readings in a row found each not renewed. */
  const unrenewed = new Map<string, { readonly lease: Lease; readonly readings: number }>();

  const renew = async (): Promise<void> => {
    try {
      const others = await leases.renewLease();
      const before = new Map(unrenewed);
      unrenewed.clear();
      for (const lease of others) {
        const known = before.get(lease.owner);
        const readings = known?.lease.renewals === lease.renewals ? known.readings + 1 : 0;
        if (readings < missedRenewals) unrenewed.set(lease.owner, { lease, readings });
        else if (await leases.endLease(lease)) onFault('an expired lease was ended', lease.owner);
      }
    } catch (error) {
      unrenewed.clear();
      if (!stopping.signal.aborted) renewalFailed(error);
    }
  };
  // Beginning a record takes the lease, so the first renewal can wait.
  const renewed = repeat(renew, { firstMs: renewMs, delayMs: renewMs }, clock, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await renewed();
    },
  };
}
