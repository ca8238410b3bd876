import { countRefusals } from '../../background/count-refusals.ts';
import { watchTopKeys } from '../../background/watch-top-keys.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { MetricSources } from '../../telemetry/metrics/read-sources.ts';
import type { StorageServices } from './storage-services.ts';
import type { ActiveConfig } from '../active-config.ts';
import type { Observability } from '../observability.ts';
import { rollUsageUp } from './usage-roller.ts';

/** What goes over the sums of usage in the background, and what it shows in the metrics. */
interface UsageWatches {
  readonly gauges: Pick<MetricSources, 'topKeys' | 'topGroups'>;
  /** Resolves when nothing is read or written any more. */
  stop(): Promise<void>;
}

/** Rolls usage up and finds the keys that spend most, which one of the processes that share them does; counts refusals. */
export function watchUsage(
  storage: StorageServices,
  { addSink }: Pick<Observability, 'addSink'>,
  active: () => Pick<ActiveConfig, 'topKeys' | 'groups'>,
  clock: Clock,
  log: Pick<Log, 'fault'>,
): UsageWatches {
  const roller = rollUsageUp(storage, clock, log);
  const { usage, store, recovered: ready, shared } = storage;
  const duty = shared?.topKeysDuty ?? null;
  const spending = watchTopKeys(
    { usage, store },
    {
      ready,
      clock,
      count: () => active().topKeys,
      hasGroups: () => active().groups.size > 0,
      duty,
      onFault: log.fault,
    },
  );
  const refusals = countRefusals(storage.refusals, { ready, clock, onFault: log.fault });
  addSink(refusals);
  return {
    gauges: { topKeys: () => spending.current(), topGroups: () => spending.currentGroups() },
    async stop() {
      await Promise.all([roller.stop(), spending.stop(), refusals.stop()]);
    },
  };
}
