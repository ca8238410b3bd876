import { randomBytes } from 'node:crypto';
import type { RequestHandler } from 'express';
import { monitorLedger } from '../background/monitor-ledger.ts';
import { isTracingEnabled } from '../config/environment.ts';
import type { Environment } from '../config/environment.ts';
import type { Config } from '../config/schema.ts';
import { createMemoryLimiter } from '../coordination/memory.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import type { ConnectionRefusal } from '../domain/connection-refusal.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { Telemetry, Tracer } from '../domain/ports/telemetry.ts';
import type { TokenCounter } from '../domain/ports/tokens.ts';
import { createTurnQueue } from '../domain/turn-queue.ts';
import type { TurnQueue } from '../domain/turn-queue.ts';
import { createUpstreamHealth } from '../domain/upstream-health.ts';
import type { UpstreamHealth } from '../domain/upstream-health.ts';
import type { PassthroughProxies } from '../http/passthrough.ts';
import { prepareAnswers } from '../http/refusal-response.ts';
import { createUnreadWatch } from '../http/unread-watch.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import type { KeyManagement } from '../operations/manage-keys.ts';
import { createMaintenance } from '../operations/maintenance.ts';
import type { Maintenance } from '../operations/maintenance.ts';
import { createInFlight } from '../pipeline/in-flight.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import { hashKey } from '../storage/key-directory.ts';
import { createConnectionReport } from '../telemetry/connection-report.ts';
import type { Log } from '../telemetry/logger.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import { createTracing } from '../telemetry/tracing.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';
import { nextId } from './next-id.ts';
import { openStorage } from './storage-services.ts';
import type { StorageServices } from './storage-services.ts';

/** What process services read of the config in force. */
export interface ActiveConfig {
  /** The balance below which a key counts as low, in nano-USD. */
  readonly lowBalanceNanos: number;
  /** The circuit state of every configured upstream; one that asked for a pause counts as open. */
  upstreamStates(): Readonly<Record<string, UpstreamState>>;
}

/** Everything that lives as long as the process and outlives every reload: storage, limits, requests, telemetry. */
export interface ProcessServices {
  readonly clock: Clock;
  readonly log: Log;
  /** When the process started, in seconds since 1970. */
  readonly startedAtSeconds: number;
  readonly storage: StorageServices;
  /** What operators do with keys. */
  readonly keyManagement: KeyManagement;
  /** Verification of the ledger, and backups. */
  readonly maintenance: Maintenance;
  readonly inFlight: InFlight;
  /** The limits of requests for text. */
  readonly limiter: Limiter;
  /** The limits of a key's reads of its own records. */
  readonly readLimiter: Limiter;
  /** Makes those reads one after the other. */
  readonly readTurns: TurnQueue;
  readonly health: UpstreamHealth;
  readonly tokens: TokenCounter;
  readonly metrics: Metrics;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
  /** Proxies of the passthrough, by server. */
  readonly passthroughProxies: PassthroughProxies;
  /** The first handler of every HTTP request. */
  readonly prepare: RequestHandler;
  /** Counts and logs a connection that a listener refused or closed for lack of room. */
  readonly onConnectionRefused: (reason: ConnectionRefusal) => void;
  /** Sets the config that metrics and the ledger monitor read from now on. */
  attach(active: ActiveConfig): void;
  /** Resolves when requests can be taken. Rejects with the reason when the database or the spool can't be opened. */
  ready(): Promise<void>;
  /** Stops all background work, then closes storage. Throws as `StorageServices.close` does. */
  close(): Promise<void>;
}

/** Builds the services of a process. `environment` holds OpenTelemetry's own `OTEL_*` variables. */
export function createProcessServices(
  config: Config,
  environment: Environment,
  clock: Clock,
  log: Log,
): ProcessServices {
  const tracer = createTracing(isTracingEnabled(environment) ? environment : null, clock, log.fault);
  const metrics = createMetrics();
  const storage = openStorage(config.storage, clock, log, metrics);
  const { engine, store, records, keyDirectory, ledgerAudit } = storage;
  const inFlight = createInFlight();
  const limiter = createMemoryLimiter(clock);
  const readLimiter = createMemoryLimiter(clock);
  let active: ActiveConfig = { lowBalanceNanos: config.limits.lowBalance, upstreamStates: () => ({}) };
  const ledgerMonitor = monitorLedger(store, ledgerAudit, clock, {
    lowBalanceNanos: () => active.lowBalanceNanos,
    isKnown: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onFault: log.fault,
  });
  metrics.attach({
    upstreamStates: () => active.upstreamStates(),
    ledgerFigures: () => ledgerMonitor.figures,
    settlementLagMs: () => records.lagMs(),
    logLinesDropped: () => log.droppedLines,
  });
  const connectionReport = createConnectionReport(metrics, log, clock);
  return {
    clock,
    log,
    startedAtSeconds: Math.floor(clock.now() / 1_000),
    storage,
    keyManagement: createKeyManagement({
      clock,
      randomBytes,
      hash: hashKey,
      forgetKeys: () => keyDirectory.forgetAll(),
      store,
    }),
    maintenance: createMaintenance(ledgerAudit, () => engine.copy(), clock),
    inFlight,
    limiter,
    readLimiter,
    readTurns: createTurnQueue(clock),
    health: createUpstreamHealth(clock, (upstream, state) =>
      log.notice(state === 'open' ? 'upstream circuit opened' : 'upstream circuit closed', { upstream }),
    ),
    tokens: createTokenCounter(),
    metrics,
    telemetry: createTelemetry([metrics, log], log.fault),
    tracer,
    passthroughProxies: new Map(),
    prepare: prepareAnswers(nextId, createUnreadWatch(clock)),
    onConnectionRefused: connectionReport.refused,
    attach: (next) => void (active = next),
    ready: async () => void (await Promise.all([storage.recovered, tracer.ready])),
    async close() {
      const tracesSent = tracer.close();
      limiter.close();
      readLimiter.close();
      connectionReport.close();
      await ledgerMonitor.stop();
      try {
        await storage.close();
      } finally {
        await tracesSent;
      }
    },
  };
}
