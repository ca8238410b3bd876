import type { Clock } from '../domain/ports/clock.ts';
import { RunningClaims } from '../pipeline/claims/running-claims.ts';
import type { ActiveConfig } from './active-config.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** The requests of this process that clients have named. Those that run are stopped when the lease on their claims has ended. */
export function composeClaims(
  { store, lease }: Pick<StorageServices, 'store' | 'lease'>,
  active: () => ActiveConfig,
  clock: Clock,
): RunningClaims {
  const claims = new RunningClaims({ store, clock, settings: () => active().resume });
  lease.follow(() => claims.leaseEnded());
  return claims;
}
