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

/**
 * The limiter of requests for text: over the slots that nodes share, or else of this process alone. `inForce` is what the
 * config in force says of keys without limits of their own, and of groups.
 */
export function composeLimiter(
  { slots, store, engine, followSlots }: StorageServices,
  inForce: () => ActiveConfig,
  clock: Clock,
  { fault: onFault }: Log,
): FollowingLimiter & { close(): void | Promise<void> } {
  const defaults = (): Limits => inForce().defaultLimits;
  const groupOfId = (id: string): Group | null => groupOf(id, inForce().groups);
  if (slots !== null) {
    const options = { clock, ready: engine.ready, onFault, defaults, groupOf: groupOfId };
    const limiter = createSharedLimiter(slots, options);
    followSlots(limiter);
    return limiter;
  }
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

/** The directory of keys, whose every change the limiter is told, too, once the database is open. */
export function tellLimiter(
  directory: ManagedKeyDirectory,
  { ready }: Engine,
  limiter: FollowingLimiter,
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
