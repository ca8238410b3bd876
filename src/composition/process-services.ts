import type { TracingSettings } from '../domain/tracing-settings.ts';
import type { FindProxy } from '../config/proxy-environment.ts';
import type { Config } from '../config/schema/schema.ts';
import { createMemoryLimiter } from '../coordination/memory-limiter.ts';
import type { Groups } from '../domain/limits/groups.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { UpstreamLimiters } from '../domain/ports/upstream-limiters.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import type { Workers } from '../domain/ports/workers.ts';
import { createTurnQueue } from '../domain/limits/turn-queue.ts';
import type { TurnQueue } from '../domain/limits/turn-queue.ts';
import type { HedgeBudgets } from '../domain/routing/hedging.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import type { PassthroughMiddlewares } from '../http/passthrough/passthrough.ts';
import type { CrossOrigin } from '../http/heads/cross-origin.ts';
import type { Prepare } from '../http/answers/prepare-answers.ts';
import type { KeyManagement } from '../operations/manage-keys.ts';
import type { RecordArchiving } from '../operations/archive-records.ts';
import { createMaintenance } from '../operations/maintenance.ts';
import type { Maintenance } from '../operations/maintenance.ts';
import type { Statements } from '../operations/statements.ts';
import { createInFlight } from '../pipeline/in-flight.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { watchHealth } from './health-and-events.ts';
import { firstHandlers } from './listeners/client-services.ts';
import { composeKeyManagement, keepDeclaredKeys } from './key-services.ts';
import { composeLimiter, tellLimiter } from './limiter-services.ts';
import { nothingActive, sourcesOf } from './active-config.ts';
import type { ActiveConfig } from './active-config.ts';
import { createDoctorRuns } from './upstreams/doctor-runs.ts';
import type { DoctorRuns } from './upstreams/doctor-runs.ts';
import { startLedgerWork } from './storage/ledger-work.ts';
import { composeMeters } from './meters.ts';
import type { Meters } from './meters.ts';
import { joinNodes } from './storage/shared-services.ts';
import { openStorage } from './storage/storage-services.ts';
import type { EventServices } from './webhook-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import type { NameSettings } from './upstreams/upstreams.ts';
import { watchUsage } from './storage/usage-watches.ts';
import { composeStatus } from './status-services.ts';
import type { StatusServices } from './status-services.ts';
import { createObservability } from './observability.ts';
import type { Observability } from './observability.ts';

/** The services of the whole process, which a reload does not replace: storage, limits, requests, observability. */
export interface ProcessServices extends Meters {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether streams may take the fast path. */
  readonly fastPath: boolean;
  /** The proxies of the environment. */
  readonly findProxy: FindProxy;
  /** Names the settings of upstreams for the operator. */
  readonly nameSettings: NameSettings;
  /** The processes on the same ports; `null` when this one has them alone. */
  readonly workers: Workers | null;
  readonly storage: StorageServices;
  /** Issues, changes, revokes and credits keys. */
  readonly keyManagement: KeyManagement;
  /** Verification of the ledger, and backups. */
  readonly maintenance: Maintenance;
  /** What operators do with old records. */
  readonly archiving: RecordArchiving;
  /** Events and their deliveries to webhooks. */
  readonly events: EventServices;
  /** Signed statements of accounts. */
  readonly statements: Statements;
  /** Requests in progress in this process. */
  readonly inFlight: InFlight;
  /** Those in progress in all processes that share the database. */
  readonly running: RunningRequests;
  /** What this process does now, for operators. */
  readonly status: StatusServices;
  /** The groups of the config in force. */
  readonly groups: () => Groups;
  /** The limits of requests for text. */
  readonly limiter: Limiter;
  /** The limits of a key's reads of its own records. */
  readonly readLimiter: Limiter;
  /** Runs those reads one after the other. */
  readonly readTurns: TurnQueue;
  /** The circuits of all upstreams. */
  readonly health: UpstreamHealth;
  /** The limiters of upstreams with limits. */
  readonly upstreamLimiters: UpstreamLimiters;
  /** Those for the requests of one more config, the latest from now on. */
  readonly limitersOfNext: () => UpstreamLimiters;
  /** Forgets what is known of an upstream, because the latest config made another one of it, or removed it. */
  readonly forget: (upstream: string) => void;
  /** The second requests that each model may still send. */
  readonly hedges: HedgeBudgets;
  /** The examinations of upstreams. */
  readonly doctorRuns: DoctorRuns;
  /** Metrics, traces and reports. */
  readonly observability: Observability;
  /** Proxies of the passthrough, by server. */
  readonly passthroughMiddlewares: PassthroughMiddlewares;
  /** The first handler of every request to the operators' routes. */
  readonly prepare: Prepare;
  /** Makes the first handler of every request of clients, who may be web pages. */
  readonly preparePublic: (crossOrigin: CrossOrigin | null) => Prepare;
  /** Sets the config whose keys are declared, and that metrics and the ledger monitor read, from now on. */
  attach(active: ActiveConfig): void;
  /** Resolves when requests can be taken. Rejects with the reason when the database or the spool can't be opened. */
  ready(): Promise<void>;
  /** Whether `close` was called: nothing can be asked of the process any more. */
  readonly isClosed: () => boolean;
  /** Refuses requests, stops all background work, then closes storage. Throws as `StorageServices.close` does. */
  close(): Promise<void>;
}

/** Settings of a process beside its config. */
export interface ProcessSettings {
  /** Nothing is traced without them. */
  readonly tracing: TracingSettings | null;
  readonly fastPath: boolean;
  /** The proxies of the environment. */
  readonly findProxy: FindProxy;
  readonly nameSettings: NameSettings;
  readonly workers: Workers | null;
}

/**
 * Returns a function that waits until the database can be used, and rejects with the reason if it can't be opened. An app
 * that only mounts the routes does not call it, and finds the reason in the log.
 */
function followOpening({ recovered }: StorageServices, log: Log): () => Promise<void> {
  let isAwaited = false;
  recovered.catch((error: unknown) => {
    if (!isAwaited) log.fault('database not opened: requests are refused', error);
  });
  return () => {
    isAwaited = true;
    return recovered;
  };
}

/** Builds the services of a process. */
export function createProcessServices(
  config: Config,
  { tracing, ...settings }: ProcessSettings,
  clock: Clock,
  log: Log,
): ProcessServices {
  const observability = createObservability(tracing, settings.workers, clock, log);
  const { metrics, tracer } = observability;
  const storage = openStorage(config.storage, clock, log, metrics);
  const inFlight = createInFlight();
  let active = nothingActive(config);
  const limiter = composeLimiter(storage, () => active, clock, log);
  const keyDirectory = tellLimiter(storage.keyDirectory, storage.engine, limiter);
  const keyServices = { ...storage, keyDirectory };
  const nodes = joinNodes(keyServices, inFlight, clock, log);
  const readLimiter = createMemoryLimiter(clock);
  let isClosed = false;
  const { usageDrift, ...meters } = composeMeters(clock, metrics);
  const watched = watchHealth(storage, () => active, { clock, log, metrics });
  const { events } = watched;
  const ledgerWork = startLedgerWork(storage, inFlight, () => active, { clock, log, metrics, events });
  const usageWatches = watchUsage(storage, observability, () => active, clock, log);
  const doctorRuns = createDoctorRuns(clock, settings.nameSettings);
  const declarations = keepDeclaredKeys(keyServices, clock, log);
  const opened = followOpening(storage, log);
  const sources = sourcesOf(() => active, storage, watched, log);
  metrics.attach({ ...sources, ...ledgerWork.figures, ...usageWatches.gauges, usageDrift });
  return {
    clock,
    log,
    ...settings,
    storage,
    keyManagement: composeKeyManagement(keyServices, clock),
    maintenance: createMaintenance(storage.ledgerAudit, storage.engine, storage.whyNoCopy, clock),
    archiving: ledgerWork.archiving,
    statements: ledgerWork.statements,
    ...watched,
    inFlight,
    ...composeStatus(storage, () => active, { inFlight, nodes, observability, ledgerWork, clock, log }),
    groups: () => active.groups,
    limiter,
    readLimiter,
    readTurns: createTurnQueue(clock),
    doctorRuns,
    ...meters,
    observability,
    passthroughMiddlewares: new Map(),
    ...firstHandlers(clock, config.server.timeouts.unread, () => isClosed),
    attach(next) {
      active = next;
      declarations.declare(next.declaredKeys);
      watched.follow(next);
    },
    isClosed: () => isClosed,
    async ready() {
      await Promise.all([opened(), tracer.ready]);
      // Keys that can't be stored are tried again later, and refused until then: all others can be used.
      await Promise.all([declarations.stored(), events.stored()]);
    },
    async close() {
      isClosed = true;
      const tracesSent = observability.close();
      declarations.stop();
      readLimiter.close();
      await limiter.close();
      await Promise.all([ledgerWork, usageWatches, watched, nodes, doctorRuns].map((work) => work.stop()));
      await meters.tokens.close();
      await closeStorage(storage, tracesSent);
    },
  };
}

/** Closes storage, which may fail; the last spans are sent all the same. */
async function closeStorage(storage: StorageServices, tracesSent: Promise<void>): Promise<void> {
  try {
    await storage.close();
  } finally {
    await tracesSent;
  }
}
