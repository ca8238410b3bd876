import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { createStatusWatch } from '../http/admin/status-watch.ts';
import type { StatusWatch } from '../http/admin/status-watch.ts';
import { readProcessStatus } from '../operations/process-status.ts';
import type { ProcessStatus } from '../operations/process-status.ts';
import { readStatus } from '../operations/read-status.ts';
import type { Status, StatusSources } from '../operations/read-status.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import { readVersion } from '../shared/version.ts';
import { addUpEndings } from '../telemetry/recent-endings.ts';
import type { ActiveConfig } from './active-config.ts';
import type { startLedgerWork } from './storage/ledger-work.ts';
import type { Observability } from './observability.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** What a process does now, for operators. */
export interface StatusServices {
  read(): Promise<Status>;
  /** What this process alone knows, as JSON for the primary process. */
  readOwn(): Promise<string>;
  readonly watch: StatusWatch;
}

/** Where the parts of a status come from. */
interface StatusParts {
  readonly inFlight: InFlight;
  readonly nodes: { readonly running: RunningRequests };
  readonly observability: Pick<Observability, 'recent' | 'workers'>;
  readonly ledgerWork: Pick<ReturnType<typeof startLedgerWork>, 'figures'>;
  readonly clock: Clock;
  readonly log: { readonly fault: ReportFault };
}

/**
 * Composes the status of a process, and the requests that it shows; `active` has what the config in force says of readiness
 * and upstreams.
 */
export function composeStatus(
  { store, records, shared }: StorageServices,
  active: () => Pick<ActiveConfig, 'whyNotReady' | 'upstreamReports'>,
  { inFlight, nodes, observability, ledgerWork, clock, log }: StatusParts,
): { readonly running: RunningRequests; readonly status: StatusServices } {
  const { figures } = ledgerWork;
  const sources: StatusSources = {
    clock,
    version: readVersion(),
    node: shared?.name ?? null,
    here: inFlight,
    everywhere: nodes.running,
    namesOf: (keyIds) => store.namesOf(keyIds),
    recent: observability.recent,
    addUp: addUpEndings,
    async workers() {
      // All workers are of one version, so they write what is read here.
      const text = (await observability.workers?.readStatuses()) ?? null;
      return text === null ? null : (JSON.parse(text) as readonly ProcessStatus[]);
    },
    ledger() {
      const { openHolds = null, imbalanceNanos = null } = figures.ledgerFigures() ?? {};
      return { openHolds, imbalanceNanos, settlementLagMs: records.lagMs(), root: figures.ledgerRoot() };
    },
    upstreamReports: () => active().upstreamReports(),
    whyNotReady: () => active().whyNotReady(),
  };
  const read = (): Promise<Status> => readStatus(sources);
  const readOwn = async (): Promise<string> => JSON.stringify(await readProcessStatus(sources));
  const watch = createStatusWatch(read, clock, log.fault);
  return { running: nodes.running, status: { read, readOwn, watch } };
}
