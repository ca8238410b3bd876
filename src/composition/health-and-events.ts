import type { KeptHistory } from '../background/history/keep-history.ts';
import { AgreedQuotas } from '../coordination/quotas/agreed-quotas.ts';
import {
  limitersOfConfig,
  MemoryUpstreamLimiters,
} from '../coordination/upstream-limiter/memory-upstream-limiters.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { HedgeBudgets } from '../domain/routing/hedging.ts';
import { circuitOpenMs } from '../domain/upstreams/circuit.ts';
import type { CircuitChange } from '../domain/upstreams/sent-request.ts';
import { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { ActiveConfig } from './active-config.ts';
import type { StorageServices } from './storage/storage-services.ts';
import { runEvents } from './webhook-services.ts';

/**
 * What a process keeps of its upstreams: their circuits, the limiters of those with limits, which are none while a circuit keeps
 * a pause, and the events that follow from circuits and from all else.
 */
export function watchUpstreams(
  storage: StorageServices,
  active: () => ActiveConfig,
  reports: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics } & Pick<
    KeptHistory,
    'mark'
  >,
) {
  const { clock, log, mark } = reports;
  const health = createLoggedHealth(clock, log, ({ upstream, model, isOpen }) => {
    mark(isOpen ? 'circuit_opened' : 'circuit_closed', { upstream, model });
    events.circuitChanged(upstream);
  });
  const events = runEvents(storage, { ...reports, active, health });
  // This process has the limits of its upstreams alone, unless nodes agree on quotas.
  const quotas =
    storage.quotas === null
      ? null
      : new AgreedQuotas(storage.quotas, {
          clock,
          holdsLease: () => storage.lease.holds,
          onFault: log.fault,
        });
  const upstreamLimiters = new MemoryUpstreamLimiters(clock, active().upstreamLimiters, {
    pausedMs: (target) => health.coolingMs(target),
    quotas,
  });
  quotas?.follow(upstreamLimiters);
  let configs = 0;
  return {
    health,
    /** The second requests that each model may still send. */
    hedges: new HedgeBudgets(),
    upstreamLimiters,
    /** The limiters for the requests of one more config, the latest from now on. */
    limitersOfNext: () => limitersOfConfig(upstreamLimiters, ++configs),
    events,
    /** Another config is in force. */
    follow(next: ActiveConfig): void {
      upstreamLimiters.configure(next.upstreamLimiters);
      events.attach(next);
    },
    /** Forgets what is known of an upstream, because the latest config made another one of it, or removed it. */
    forget(upstream: string): void {
      health.forget(upstream);
      upstreamLimiters.forget(upstream, configs);
    },
    /** Resolves when the events are stopped, and the quotas of this process are given back to the others. */
    async stop(): Promise<void> {
      upstreamLimiters.close();
      await Promise.all([events.stop(), quotas?.close()]);
    },
  };
}

/** The circuits of all upstreams and their models: one that opens is logged with its cause. */
function createLoggedHealth(
  clock: Clock,
  { notice }: Log,
  onChange: (change: CircuitChange) => void,
): UpstreamHealth {
  return new UpstreamHealth(clock, (change) => {
    const { upstream, model, isOpen, onlyKey, cause } = change;
    onChange(change);
    const named = {
      upstream,
      ...(model === null ? {} : { model }),
      ...(onlyKey === null ? {} : { onlyKey }),
    };
    if (isOpen) notice('upstream circuit opened', { ...named, cause, trialAfterMs: circuitOpenMs });
    else notice('upstream circuit closed', named);
  });
}
