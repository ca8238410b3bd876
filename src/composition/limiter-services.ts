import type { Config } from '../config/schema/schema.ts';
import { AgreedQuotas } from '../coordination/quotas/agreed-quotas.ts';
import { createMemoryLimiter } from '../coordination/memory-limiter.ts';
import { createSharedLimiter } from '../coordination/shared-limiter.ts';
import { groupOf, limitsOfGroup } from '../domain/limits/groups.ts';
import type { Group } from '../domain/limits/groups.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { FollowingLimiter } from '../domain/ports/limiter.ts';
import { override } from '../shared/override.ts';
import type { Engine } from '../storage/engine.ts';
import type { ManagedKeyDirectory } from '../storage/keys/key-directory.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { ActiveConfig } from './active-config.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** A limiter that a process closes at its end. */
interface ClosableLimiter extends FollowingLimiter {
  close(): void | Promise<void>;
}

/** The limits of keys without limits of their own. */
export function defaultLimitsOf(limits: Config['limits']): Limits {
  const { concurrency, requestsPerMinute, queueWait, tokensPerMinute, tokensPerDay } = limits;
  return {
    concurrency,
    requestsPerMinute,
    queueWaitMs: queueWait,
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
    ...(tokensPerDay === undefined ? {} : { tokensPerDay }),
  };
}

/**
 * The limiter of requests for text: over the slots that nodes share, or else of this process alone. `inForce` is what the
 * config in force says of keys without limits of their own, and of groups.
 */
export function composeLimiter(
  { slots, store, engine }: Pick<StorageServices, 'slots' | 'store' | 'engine'>,
  inForce: () => Pick<ActiveConfig, 'defaultLimits' | 'groups'>,
  clock: Clock,
  { fault: onFault }: Pick<Log, 'fault'>,
): ClosableLimiter {
  const defaults = (): Limits => inForce().defaultLimits;
  const groupOfId = (id: string): Group | null => groupOf(id, inForce().groups);
  if (slots !== null)
    return createSharedLimiter(slots, { clock, ready: engine.ready, onFault, defaults, groupOf: groupOfId });
  const limitsOf = async (keyIds: readonly string[]): Promise<ReadonlyMap<string, Limits>> => {
    const found = await store.limitsOf(keyIds);
    const ofGroups = keyIds.map(groupOfId).filter((group) => group !== null);
    return new Map([
      ...[...found].map(([keyId, own]) => [keyId, override(defaults(), own)] as const),
      ...ofGroups.map((group) => [group.id, limitsOfGroup(group, 0)] as const),
    ]);
  };
  return createMemoryLimiter(clock, { limitsOf, onFault });
}

/** The quotas of this process in the limits of upstreams; `null` where it has all of them. */
export function composeQuotas(
  { quotas, lease }: Pick<StorageServices, 'quotas' | 'lease'>,
  clock: Clock,
  { fault: onFault }: Pick<Log, 'fault'>,
): AgreedQuotas | null {
  if (quotas === null) return null;
  return new AgreedQuotas(quotas, { clock, holdsLease: () => lease.holds, onFault });
}

/** The directory of keys, whose every change the limiter is told, too, once the database is open. */
export function tellLimiter(
  directory: ManagedKeyDirectory,
  { ready }: Pick<Engine, 'ready'>,
  limiter: Pick<FollowingLimiter, 'limitsChanged'>,
): ManagedKeyDirectory {
  const tell = (): void =>
    void ready.then(
      () => limiter.limitsChanged(),
      () => {},
    );
  return {
    ...directory,
    forgetAll() {
      directory.forgetAll();
      tell();
    },
    declare(declared) {
      directory.declare(declared);
      tell();
    },
  };
}
