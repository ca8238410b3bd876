import { watchTopKeys } from '../background/watch-top-keys.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RetentionSettings } from '../background/remove-old-records.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import type { Log } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { MetricSources } from '../telemetry/read-sources.ts';
import type { ActiveConfig } from './active-config.ts';
import { watchLedger } from './ledger-monitor.ts';
import { removeOld } from './record-remover.ts';
import type { StorageServices } from './storage-services.ts';
import { rollUsageUp } from './usage-roller.ts';

/** What reads and tidies up the database in the background, and what it shows in the metrics. */
interface Watches {
  readonly gauges: Pick<MetricSources, 'ledgerFigures' | 'oldestRecordAgeMs' | 'topKeys'>;
  /** Resolves when nothing is read or written any more. */
  stop(): Promise<void>;
}

/** What the watches report to, and how long records are kept. */
interface WatchTools {
  readonly clock: Clock;
  readonly log: Pick<Log, 'fault' | 'notice'>;
  readonly metrics: Pick<Metrics, 'holdsExpired' | 'recordsRemoved'>;
  readonly settings: () => RetentionSettings;
}

/**
 * Audits the ledger, removes old records, rolls usage up and finds the keys that spend most; of processes that share them,
 * one does.
 */
export function watchDatabase(
  storage: StorageServices,
  inFlight: InFlight,
  active: () => ActiveConfig,
  tools: WatchTools,
): Watches {
  const ledger = watchLedger(storage, inFlight, () => active().lowBalanceNanos, tools);
  const remover = removeOld(storage, tools);
  const roller = rollUsageUp(storage, tools.clock, tools.log);
  const { usage, store, recovered: ready, shared } = storage;
  const spending = watchTopKeys(
    { usage, store },
    {
      ready,
      clock: tools.clock,
      count: () => active().topKeys,
      duty: shared?.topKeysDuty ?? null,
      onFault: tools.log.fault,
    },
  );
  return {
    gauges: {
      ledgerFigures: () => ledger.figures,
      oldestRecordAgeMs: () => remover.oldestRecordAgeMs(),
      topKeys: () => spending.current(),
    },
    async stop() {
      await Promise.all([ledger, remover, roller, spending].map((watch) => watch.stop()));
    },
  };
}
