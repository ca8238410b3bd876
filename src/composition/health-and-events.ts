import { roomsOfConfig } from '../coordination/rooms/rooms-of-config.ts';
import { MemoryRooms } from '../coordination/rooms/rooms.ts';
import { circuitOpenMs } from '../domain/upstreams/circuit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Rooms } from '../domain/ports/rooms.ts';
import { HedgeBudgets } from '../domain/routing/hedging.ts';
import { createUpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { ActiveConfig } from './active-config.ts';
import { composeRoomShares } from './limiter-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import { runEvents } from './webhook-services.ts';
import type { EventServices } from './webhook-services.ts';

/** The circuits of all upstreams and their models: one that opens is logged with its cause. */
function createLoggedHealth(
  clock: Clock,
  { notice }: Pick<Log, 'notice'>,
  onChange: (upstream: string) => void,
): UpstreamHealth {
  return createUpstreamHealth(clock, ({ upstream, model, isOpen, onlyKey, cause }) => {
    onChange(upstream);
    const named = {
      upstream,
      ...(model === null ? {} : { model }),
      ...(onlyKey === null ? {} : { onlyKey }),
    };
    if (isOpen) notice('upstream circuit opened', { ...named, cause, trialAfterMs: circuitOpenMs });
    else notice('upstream circuit closed', named);
  });
}

/** What a process keeps of its upstreams, and the events. */
interface WatchedUpstreams {
  readonly health: UpstreamHealth;
  /** The second requests that each model may still send. */
  readonly hedges: HedgeBudgets;
  readonly rooms: MemoryRooms;
  /** The rooms for the requests of one more config, the latest from now on. */
  readonly roomsOfNext: () => Rooms;
  readonly events: EventServices;
  /** Another config is in force. */
  follow(next: ActiveConfig): void;
  /** Forgets what is known of an upstream, because the latest config made another one of it, or removed it. */
  forget(upstream: string): void;
  /** Resolves when the events are stopped, and the places of this process are given back to those that share them. */
  stop(): Promise<void>;
}

/**
 * The circuits of all upstreams, the places at those with limits, which are none while a circuit keeps a pause, and the events
 * that follow from circuits and from all else.
 */
export function watchHealth(
  storage: StorageServices,
  active: () => ActiveConfig,
  reports: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics },
): WatchedUpstreams {
  const { clock, log } = reports;
  const health = createLoggedHealth(clock, log, (upstream) => events.circuitChanged(upstream));
  const events = runEvents(storage, { ...reports, active, health });
  const shares = composeRoomShares(storage, clock, log);
  const rooms = new MemoryRooms(clock, active().rooms, {
    pausedMs: (target) => health.coolingMs(target),
    shares,
  });
  shares?.follow(rooms);
  let configs = 0;
  return {
    health,
    hedges: new HedgeBudgets(),
    rooms,
    roomsOfNext: () => roomsOfConfig(rooms, ++configs),
    events,
    follow(next) {
      rooms.configure(next.rooms);
      events.attach(next);
    },
    forget(upstream) {
      health.forget(upstream);
      rooms.forget(upstream, configs);
    },
    async stop() {
      rooms.close();
      await Promise.all([events.stop(), shares?.close()]);
    },
  };
}
