import { circuitOpenMs } from '../domain/circuit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { createUpstreamHealth } from '../domain/upstream-health.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { Log } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { ActiveConfig } from './active-config.ts';
import type { StorageServices } from './storage-services.ts';
import { runEvents } from './webhook-services.ts';
import type { EventServices } from './webhook-services.ts';

/** The circuits of all upstreams: one that opens is logged with its cause. */
function createLoggedHealth(
  clock: Clock,
  { notice }: Pick<Log, 'notice'>,
  onChange: (upstream: string) => void,
): UpstreamHealth {
  return createUpstreamHealth(clock, (upstream, state, cause) => {
    onChange(upstream);
    if (state === 'open') notice('upstream circuit opened', { upstream, cause, trialAfterMs: circuitOpenMs });
    else notice('upstream circuit closed', { upstream });
  });
}

/** The circuits of all upstreams, and the events that follow from them and from all else. */
export function watchHealth(
  storage: StorageServices,
  active: () => ActiveConfig,
  reports: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics },
): { readonly health: UpstreamHealth; readonly events: EventServices } {
  const { clock, log } = reports;
  const health = createLoggedHealth(clock, log, (upstream) => events.circuitChanged(upstream));
  const events = runEvents(storage, { ...reports, active, health });
  return { health, events };
}
