import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import type { Workers } from '../domain/ports/workers.ts';
import type { ShadowBook, ShadowView } from '../domain/shadows/shadow-book.ts';
import { createStatusWatch } from '../http/admin/status-watch.ts';
import { inTime } from '../domain/time-limit.ts';
import { readProcessStatus, readStatus, workersPatienceMs } from '../operations/read-status.ts';
import type { ProcessStatus, Status, StatusSources } from '../operations/read-status.ts';
import { joinShadows } from '../operations/process-views.ts';
import type { ProcessViews } from '../operations/process-views.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import { readVersion } from '../shared/version.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { addUpEndings } from '../telemetry/recent-endings.ts';
import type { ActiveConfig } from './active-config.ts';
import type { Observability } from './observability.ts';
import type { startBackgroundWork } from './storage/background-work.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** Where the parts of a status come from. */
interface StatusParts {
  readonly inFlight: InFlight;
  readonly running: RunningRequests;
  readonly observability: Observability;
  readonly workers: Workers | null;
  readonly work: ReturnType<typeof startBackgroundWork>;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a process does now, for operators; `active` says what the config in force knows of readiness and upstreams. */
export function composeStatus(
  { store, records, shared }: StorageServices,
  active: () => ActiveConfig,
  { inFlight, running, observability, workers, work, clock, log }: StatusParts,
) {
  const { gauges } = work;
  const sources: StatusSources = {
    clock,
    version: readVersion(),
    node: shared?.name ?? null,
    here: inFlight,
    everywhere: running,
    namesOf: (keyIds) => store.namesOf(keyIds),
    recent: observability.recent,
    addUp: addUpEndings,
    workers: async () => parse(await workers?.readStatuses()) as readonly ProcessStatus[] | null,
    ledger() {
      const { openHolds = null, imbalanceNanos = null } = gauges.ledgerFigures() ?? {};
      return { openHolds, imbalanceNanos, settlementLagMs: records.lagMs(), root: gauges.ledgerRoot() };
    },
    upstreamReports: () => active().upstreamReports(),
    whyNotReady: () => active().whyNotReady(),
  };
  const read = (): Promise<Status> => readStatus(sources);
  return {
    read,
    /** What this process alone knows, as JSON for the primary process. */
    readOwn: async () => JSON.stringify(await readProcessStatus(sources)),
    watch: createStatusWatch(read, clock, log.fault),
  };
}

/** What each worker has written; `null` where there is one process, and if they could not be asked. */
function parse(text: string | null = null): unknown {
  // All workers are of one version, so they write what is read here.
  return text === null ? null : JSON.parse(text);
}

/** What all workers know of upstreams and shadow routes, this one among them. */
export async function readWorkerViews(workers: Workers | null): Promise<readonly ProcessViews[] | null> {
  return parse(await workers?.readViews()) as readonly ProcessViews[] | null;
}

/** The shadow routes of the config in force as all workers know them. Never rejects: those that can't be asked are left out. */
export async function listShadows(
  book: ShadowBook,
  workers: Workers | null,
  clock: Clock,
): Promise<readonly ShadowView[]> {
  const told = await inTime(readWorkerViews(workers), workersPatienceMs, clock);
  const all = (told ?? []).map(({ shadows }) => shadows);
  return joinShadows(book.views(), all);
}
