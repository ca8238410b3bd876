import { monitorLedger } from '../../background/monitor-ledger.ts';
import type { LedgerMonitor } from '../../background/monitor-ledger.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { InFlight } from '../../pipeline/in-flight.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { StorageServices } from './storage-services.ts';
import type { EventServices } from '../webhook-services.ts';

/** What the monitor reports to. */
interface MonitorReports {
  readonly clock: Clock;
  readonly log: Pick<Log, 'fault'>;
  readonly metrics: Pick<Metrics, 'holdsExpired'>;
  readonly events: Pick<EventServices, 'audited'>;
}

/** Monitors the ledger; of processes that share it, one audits it for all. */
export function watchLedger(
  { store, ledgerAudit, recovered, records, shared }: StorageServices,
  inFlight: InFlight,
  lowBalanceNanos: () => number,
  { clock, log, metrics, events }: MonitorReports,
): LedgerMonitor {
  return monitorLedger(store, ledgerAudit, {
    clock,
    ready: recovered,
    lowBalanceNanos,
    isPending: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onAudited: (imbalanceNanos, faults) => events.audited(imbalanceNanos, faults),
    onFault: log.fault,
    duty: shared?.ledgerDuty ?? null,
  });
}
