import { randomBytes } from 'node:crypto';
import { keepDeclarations } from '../background/keep-declarations.ts';
import { reportDeclarations } from '../background/report-declarations.ts';
import type { FindProxy } from '../config/proxy-environment.ts';
import type { Config } from '../config/schema/schema.ts';
import { createMemoryLimiter } from '../coordination/memory-limiter.ts';
import { createTurnQueue } from '../domain/limits/turn-queue.ts';
import { UsageDrift } from '../domain/money/usage-drift.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import { ShadowBook } from '../domain/shadows/shadow-book.ts';
import type { TracingSettings } from '../domain/tracing-settings.ts';
import type { AdminAccess } from '../http/admin/access.ts';
import type { AdminPorts } from '../http/admin/router.ts';
import { prepareAnswers } from '../http/answers/prepare-answers.ts';
import type { Prepare } from '../http/answers/prepare-answers.ts';
import { createUnreadWatch } from '../http/connections/unread-watch.ts';
import type { CrossOrigin } from '../http/heads/cross-origin.ts';
import type { PassthroughMiddlewares } from '../http/passthrough/passthrough.ts';
import type { UsageReads } from '../http/usage.ts';
import { declareKeys } from '../operations/declare-keys.ts';
import { hasActiveKey } from '../operations/has-active-key.ts';
import { createMaintenance } from '../operations/maintenance.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import { createBudgetUse } from '../operations/read-budget-use.ts';
import { createReadRefused } from '../operations/read-refused.ts';
import { createInFlight } from '../pipeline/in-flight.ts';
import { createSecondMeter } from '../pipeline/money/second-meter.ts';
import type { Ports } from '../pipeline/ports.ts';
import { hashKey } from '../shared/hash-key.ts';
import type { ManagedKeyDirectory } from '../storage/keys/key-directory.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';
import { nothingActive } from './active-config.ts';
import type { ActiveConfig } from './active-config.ts';
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

/** The services of the whole process, which a reload does not replace: storage, limits, requests, observability. */
export type ProcessServices = ReturnType<typeof createProcessServices>;

/** Builds the services of a process. */
export function createProcessServices(config: Config, settings: ProcessSettings, clock: Clock, log: Log) {
  const { workers, fastPath, access } = settings;
  let isClosed = false;
  let active = nothingActive(config);
  const inForce = (): ActiveConfig => active;

  const observability = createObservability(settings.tracing, workers, clock, log);
  const { metrics, telemetry, tracer } = observability;
  const storage = openStorage(config.storage, clock, log, metrics);
  const { engine, store, records, tokenUse } = storage;

  const inFlight = createInFlight();
  const limiter = composeLimiter(storage, inForce, clock, log);
  const keys = tellLimiter(storage.keyDirectory, engine, limiter);
  const nodes = joinNodes({ ...storage, keyDirectory: keys }, inFlight, clock, log);
  const { running } = nodes;
  const readLimiter = createMemoryLimiter(clock);

  const tokens = createTokenCounter(clock);
  const usageDrift = new UsageDrift();
  const secondMeter = createSecondMeter(tokens, usageDrift, (result) => metrics.usageSampled(result));
  const shadowBook = new ShadowBook(clock, metrics.shadows);

  const upstreams = watchUpstreams(storage, inForce, { clock, log, metrics });
  const { health, hedges, upstreamLimiters, limitersOfNext, forget, events } = upstreams;
  const { addSink } = observability;
  const work = startBackgroundWork(storage, inFlight, inForce, { clock, log, metrics, events, addSink });
  const { statements } = work;
  const doctorRuns = createDoctorRuns(clock, settings.nameSettings);
  const declarations = keepDeclaredKeys(storage, keys, clock, log);
  const opened = followOpening(storage, log);
  const status = composeStatus(storage, inForce, {
    inFlight,
    running,
    observability,
    workers,
    work,
    clock,
    log,
  });
  metrics.attach({
    ...work.gauges,
    usageDrift: () => usageDrift.figures(),
    upstreamLimiters: () => upstreamLimiters.views(),
    oldestEventAgeMs: () => events.oldestAgeMs(),
    upstreamStates: () => active.upstreamStates(),
    upstreamModelStates: () => active.upstreamModelStates(),
    modelAvailability: () => active.modelAvailability(),
    settlementLagMs: () => records.lagMs(),
    isDatabaseUsable: () => records.writeFault === null && engine.impaired === null,
    databaseLogBytes: () => engine.logBytes,
    logLinesDropped: () => log.droppedLines,
  });

  const usage: UsageReads = { usage: storage.usage.usage, namesOf: store.namesOf };
  const watchUnread = createUnreadWatch(clock, config.server.timeouts.unread);
  const preparePublic = (crossOrigin: CrossOrigin | null): Prepare =>
    prepareAnswers(nextId, watchUnread, () => isClosed, crossOrigin);
  const prepare = preparePublic(null);

  return {
    ...settings,
    clock,
    log,
    observability,
    storage,
    events,
    status,
    shadowBook,
    doctorRuns,
    upstreamLimiters,
    /** The limiters of upstreams for the requests of one more config, the latest from now on. */
    limitersOfNext,
    /** Forgets what is known of an upstream, because the latest config made another one of it, or removed it. */
    forget,
    /** Issues, changes, revokes and credits keys. */
    keyManagement: createKeyManagement({
      clock,
      randomBytes,
      hash: hashKey,
      forgetKeys: () => keys.forgetAll(),
      store,
    }),
    /** What requests for text use, whatever the config in force says. */
    ports: {
      clock,
      keys,
      limiter,
      tokenUse,
      records,
      telemetry,
      tracer,
      inFlight,
      tokens,
      secondMeter,
      health,
      hedges,
      random: Math.random,
      fastPath,
      groups: () => active.groups,
    } satisfies Partial<Ports>,
    /** What operators and the holders of keys read of keys and requests. */
    reads: {
      listRecords: store.listRecords,
      findRecord: store.findRecord,
      namesOf: store.namesOf,
      accounts: store.accounts,
      removedBefore: storage.retention.removedBefore,
      usage,
      budgetUse: createBudgetUse(store, clock),
      refusedToday: createReadRefused(storage.refusals, clock),
      /** The requests in progress in all processes that share the database. */
      running,
      statements,
    },
    /** What bounds the reads of the holders of keys. */
    readBounds: { readLimiter, readTurns: createTurnQueue(clock) },
    /** What operators have of the process. */
    administration: {
      access,
      console: consoleFiles,
      manual,
      prepare,
      onFailedLogin: (address) =>
        log.notice(
          'wrong token at the login of the console',
          address === null ? {} : { clientAddress: address },
        ),
      status,
      shadows: () => listShadows(shadowBook, workers, clock),
      maintenance: createMaintenance(storage.ledgerAudit, engine, storage.whyNoCopy, clock),
      archiving: work.archiving,
      statements,
      metrics: observability.exposed,
      onFault: log.fault,
      sharedDatabase: storage.sharedState,
    } satisfies Partial<AdminPorts>,
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
      upstreams.follow(next);
    },
    /** Whether `close` was called: nothing can be asked of the process any more. */
    isClosed: () => isClosed,
    /** Resolves when requests can be taken. Rejects with the reason when the database or the spool can't be opened. */
    async ready(): Promise<void> {
      await Promise.all([opened(), tracer.ready]);
      // Keys that can't be stored are tried again later, and refused until then: all others can be used.
      await Promise.all([declarations.stored(), events.stored()]);
    },
    /** Refuses requests, stops all background work, then closes storage. Throws as `StorageServices.close` does. */
    async close(): Promise<void> {
      isClosed = true;
      const tracesSent = observability.close();
      declarations.stop();
      readLimiter.close();
      await limiter.close();
      await Promise.all([work, upstreams, nodes, doctorRuns].map((one) => one.stop()));
      await tokens.close();
      // The last spans are sent even where storage can't be closed.
      await storage.close().finally(() => tracesSent);
    },
  };
}

/** Keeps the keys that the config in force declares. */
function keepDeclaredKeys(
  { store, recovered }: StorageServices,
  directory: ManagedKeyDirectory,
  clock: Clock,
  log: Log,
) {
  const now = (): number => clock.now();
  return keepDeclarations({
    clock,
    directory,
    store: (keys) => declareKeys(keys, { store, randomBytes, hash: hashKey, now }),
    ready: recovered,
    onFault: log.fault,
    onChange: (report) => void reportDeclarations(report, () => hasActiveKey(store, now()), log),
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
