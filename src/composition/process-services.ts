import { randomBytes } from 'node:crypto';
import type { FindProxy } from '../config/proxy-environment.ts';
import type { Config } from '../config/schema/schema.ts';
import { createMemoryLimiter } from '../coordination/memory-limiter.ts';
import { createTurnQueue } from '../domain/limits/turn-queue.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import { ShadowBook } from '../domain/shadows/shadow-book.ts';
import type { TracingSettings } from '../domain/ports/telemetry.ts';
import type { AdminAccess } from '../http/admin/access.ts';
import type { FailureReads } from '../http/admin/failures.ts';
import type { LatencyReads } from '../http/admin/latency.ts';
import type { AdminPorts } from '../http/admin/router.ts';
import { prepareAnswers } from '../http/answers/prepare-answers.ts';
import type { Prepare } from '../http/answers/prepare-answers.ts';
import { createUnreadWatch } from '../http/connections/unread-watch.ts';
import type { CrossOrigin } from '../http/heads/cross-origin.ts';
import type { OwnKeyPorts } from '../http/own-key-routes.ts';
import type { PassthroughMiddlewares } from '../http/passthrough/passthrough.ts';
import { createBudgetUse, createReadRefused } from '../operations/key-use.ts';
import { createMaintenance } from '../operations/maintenance.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import { InFlight } from '../pipeline/in-flight.ts';
import { hashKey } from '../shared/digest.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';
import { nothingActive } from './active-config.ts';
import { composeClaims } from './claim-services.ts';
import type { ActiveConfig } from './active-config.ts';
import { keepDeclaredKeys } from './declared-key-services.ts';
import { settingsInForce } from './fixed-settings.ts';
import { createFeatures } from './features.ts';
import { composeHistory } from './history-services.ts';
import { watchUpstreams } from './health-and-events.ts';
import { composeLimiter, tellLimiter } from './limiter-services.ts';
import { nextId } from './next-id.ts';
import { createObservability } from './observability.ts';
import { consoleFiles, manual } from './package-files.ts';
import { composeStatus, listShadows } from './status-services.ts';
import { startBackgroundWork } from './storage/background-work.ts';
import { joinNodes } from './storage/shared-services.ts';
import { openStorage } from './storage/storage-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import { createDoctorRuns } from './upstreams/doctor-runs.ts';
import type { NameSettings } from './upstreams/upstreams.ts';

/** What a process has beside its config. */
export interface ProcessSettings {
  /** Nothing is traced without them. */
  readonly tracing: TracingSettings | null;
  /** Whether streams may take the fast path. */
  readonly fastPath: boolean;
  /** The proxies of the environment. */
  readonly findProxy: FindProxy;
  /** Names the settings of upstreams for the operator. */
  readonly nameSettings: NameSettings;
  /** The processes on the same ports; `null` when this one has them alone. */
  readonly workers: Workers | null;
  /** Who may use the operators' routes. */
  readonly access: AdminAccess;
}

/** The parts of a process, each made of those before it; work in the background begins once the database is open. */
function makeParts(
  config: Config,
  settings: ProcessSettings,
  clock: Clock,
  log: Log,
  active: () => ActiveConfig,
) {
  const observability = createObservability(settings.tracing, settings.workers, clock, log);
  const { metrics, addSink } = observability;
  const storage = openStorage(config.storage, clock, log, metrics, () => active().takesImported);

  const inFlight = new InFlight();
  const claiming = composeClaims(storage, config, settings.workers, { active, inFlight, clock, log });
  const limiter = composeLimiter(storage, active, clock, log);
  const keys = tellLimiter(storage.keyDirectory, storage.engine, limiter);
  const nodes = joinNodes({ ...storage, keyDirectory: keys }, inFlight, clock, log);
  const readLimiter = createMemoryLimiter(clock);

  const tokens = createTokenCounter(clock);
  const shadowBook = new ShadowBook(clock, metrics.shadows);

  const history = composeHistory(storage, active, { clock, log, addSink });
  const upstreams = watchUpstreams(storage, active, { clock, log, metrics, mark: history.mark });
  const { events } = upstreams;
  const work = startBackgroundWork(storage, inFlight, active, { clock, log, metrics, events, addSink });
  const { running } = nodes;
  const { workers } = settings;
  return {
    clock,
    log,
    observability,
    storage,
    /** Requests in progress in this process. */
    inFlight,
    /** Those that clients have named. */
    claims: claiming.claims,
    claiming,
    /** Those in progress in all processes that share the database. */
    running,
    /** The limits of requests for text. */
    limiter,
    keys,
    nodes,
    /** The limits of a key's reads of its own records. */
    readLimiter,
    /** Counts tokens where an upstream reported none. */
    tokens,
    /** What few use. */
    features: createFeatures({ tokens, metrics, random: Math.random }, log.fault),
    /** The counts and budgets of shadow requests. */
    shadowBook,
    upstreams,
    history,
    work,
    /** The examinations of upstreams. */
    doctorRuns: createDoctorRuns(clock, settings.nameSettings),
    declarations: keepDeclaredKeys(storage, keys, clock, log),
    /** What this process does now, for operators. */
    status: composeStatus(storage, active, { inFlight, running, observability, workers, work, clock, log }),
  };
}

type Parts = ReturnType<typeof makeParts>;

/** The services of the whole process, which a reload does not replace: storage, limits, requests, observability. */
export type ProcessServices = ReturnType<typeof createProcessServices>;

/** Builds the services of a process. */
export function createProcessServices(config: Config, settings: ProcessSettings, clock: Clock, log: Log) {
  let isClosed = false;
  let active = nothingActive(config);
  const atStart = active.audited();
  const parts = makeParts(config, settings, clock, log, () => active);
  const { storage, observability, upstreams, declarations, work, nodes, history, doctorRuns, features } =
    parts;
  const opened = followOpening(storage, log);
  showGauges(parts, () => active);

  const watchUnread = createUnreadWatch(clock, config.server.timeouts.unread);
  const preparePublic = (crossOrigin: CrossOrigin | null): Prepare =>
    // The time of a request is in its id: it must be that of the clock by which periods begin and records are read.
    prepareAnswers(
      () => nextId(clock.now()),
      watchUnread,
      () => isClosed,
      crossOrigin,
    );
  const prepare = preparePublic(null);
  return {
    ...settings,
    ...parts,
    /** The groups of the config in force. */
    groups: () => active.groups,
    /** What operators and the holders of keys read of keys and requests. */
    reads: readsOf(parts),
    /** What bounds the reads of the holders of keys. */
    readBounds: { readLimiter: parts.readLimiter, readTurns: createTurnQueue(clock) },
    /** Issues, changes, revokes and credits keys. */
    keyManagement: createKeyManagement({
      clock,
      randomBytes,
      hash: hashKey,
      forgetKeys: () => parts.keys.forgetAll(),
      store: storage.store,
    }),
    /** What operators have of the process. */
    administration: { ...administrationOf(parts, settings), prepare },
    /** Proxies of the passthrough, by server. */
    passthroughMiddlewares: new Map() as PassthroughMiddlewares,
    /** The first handler of every request to the operators' routes. */
    prepare,
    /** Makes the first handler of every request of clients, who may be web pages. */
    preparePublic,
    /** Sets the config whose keys are declared, and that metrics and the ledger monitor read, from now on. */
    attach(next: ActiveConfig): void {
      active = next;
      declarations.declare(next.declaredKeys);
      work.audit.noteConfig(settingsInForce(atStart, next.audited()));
      upstreams.follow(next);
    },
    /** Whether `close` was called: nothing can be asked of the process any more. */
    isClosed: () => isClosed,
    /** Resolves when requests can be taken. Rejects with the reason when the database or the spool can't be opened. */
    async ready(): Promise<void> {
      await Promise.all([
        opened(),
        parts.claiming.reachable(),
        observability.tracer.ready,
        features.loaded(),
      ]);
      // Keys that can't be stored are tried again later, and refused until then: all others can be used.
      await Promise.all([declarations.stored(), upstreams.events.stored()]);
    },
    /** Refuses requests, stops all background work, then closes storage. Throws as `StorageServices.close` does. */
    async close(): Promise<void> {
      isClosed = true;
      const tracesSent = observability.close();
      declarations.stop();
      parts.readLimiter.close();
      await Promise.all([parts.claiming.close(), parts.limiter.close()]);
      await Promise.all([work, upstreams, nodes, history, doctorRuns].map((one) => one.stop()));
      await parts.tokens.close();
      try {
        await storage.close();
      } finally {
        // The last spans are sent even where storage can't be closed.
        await tracesSent;
      }
    },
  };
}

/** What operators and the holders of keys read, each by its routes. */
type Reads = FailureReads &
  LatencyReads &
  Pick<OwnKeyPorts, 'accounts' | 'usage' | 'budgetUse' | 'refusedToday' | 'running' | 'statements'>;

function readsOf({ storage, running, work, clock }: Parts): Reads {
  const { store, usage, retention, refusals } = storage;
  return {
    listRecords: (filter, limit, before) => store.listRecords(filter, limit, before),
    countLatencies: (query, most) => store.countLatencies(query, most),
    findRecord: (requestId, keyId) => store.findRecord(requestId, keyId),
    namesOf: (keyIds) => store.namesOf(keyIds),
    accounts: (keyIds) => store.accounts(keyIds),
    removedBefore: () => retention.removedBefore(),
    usage: { usage: (query) => usage.usage(query), namesOf: (keyIds) => store.namesOf(keyIds) },
    budgetUse: createBudgetUse(store, clock),
    refusedToday: createReadRefused(refusals, clock),
    refusals,
    clock,
    running,
    statements: work.statements,
  };
}

/** What operators have of the process. */
function administrationOf(
  { storage, work, status, history, shadowBook, observability, clock, log }: Parts,
  { access, workers }: ProcessSettings,
) {
  return {
    access,
    console: consoleFiles,
    manual,
    onFailedLogin: (clientAddress) =>
      log.notice('wrong token at the login of the console', clientAddress === null ? {} : { clientAddress }),
    status,
    history: history.reads,
    shadows: () => listShadows(shadowBook, workers, clock),
    maintenance: createMaintenance(storage.ledgerAudit, storage.engine, storage.whyNoCopy, clock),
    archiving: work.archiving,
    audit: work.audit.trail,
    note: work.audit.noteAct,
    statements: work.statements,
    metrics: observability.exposed,
    onFault: log.fault,
    sharedDatabase: storage.sharedState,
  } satisfies Partial<AdminPorts>;
}

/** Sets what the gauges are read from. */
function showGauges(
  { observability, storage, claims, work, upstreams, log }: Parts,
  active: () => ActiveConfig,
): void {
  const { records, engine } = storage;
  observability.metrics.attach({
    ...work.gauges,
    upstreamLimiters: () => upstreams.upstreamLimiters.views(),
    oldestEventAgeMs: () => upstreams.events.oldestAgeMs(),
    upstreamStates: () => active().upstreamStates(),
    upstreamModelStates: () => active().upstreamModelStates(),
    modelAvailability: () => active().modelAvailability(),
    settlementLagMs: () => records.lagMs(),
    isDatabaseUsable: () => records.writeFault === null && engine.impaired === null,
    databaseLogBytes: () => engine.logBytes,
    logLinesDropped: () => log.droppedLines,
    keptAnswerBytes: () => claims.keptBytes,
  });
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
