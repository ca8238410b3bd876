import { randomBytes, randomUUID } from 'node:crypto';
import type { Router } from 'express';
import { systemClock } from './composition/clock.ts';
import { composeModels, composePassthrough, composeUpstreams } from './composition/upstreams.ts';
import { wantsTraces } from './config/environment.ts';
import { checkConfig } from './config/load.ts';
import type { Config, ConfigInput } from './config/schema.ts';
import { createMemoryLimiter } from './coordination/memory.ts';
import type { KeySettings } from './domain/api-key.ts';
import type { Clock } from './domain/ports.ts';
import { createUpstreamHealth } from './domain/upstream-health.ts';
import { createAdminRouter } from './http/admin-router.ts';
import { createPublicRouter } from './http/public-router.ts';
import { createHttpServer, startListening } from './http/server.ts';
import { createKeyManagement } from './operations/manage-keys.ts';
import type { IssuedKey } from './operations/manage-keys.ts';
import { watchBooks } from './operations/watch-books.ts';
import { verifyLedger } from './operations/verify-ledger.ts';
import { createBooks } from './storage/books.ts';
import type { Ports } from './pipeline/exchange.ts';
import { awaitSettlements, drain } from './pipeline/drain.ts';
import { createInFlight } from './pipeline/in-flight.ts';
import type { Engine } from './storage/engine.ts';
import { createKeyDirectory, hashKey } from './storage/key-directory.ts';
import { createSqliteEngine } from './storage/sqlite/engine.ts';
import { keepSettlements } from './storage/kept-settlements.ts';
import { createStore } from './storage/store.ts';
import { createLog } from './telemetry/logger.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { createTelemetry } from './telemetry/telemetry.ts';
import { createTracing } from './telemetry/tracing.ts';
import { isRefusal } from './shared/errors.ts';
import { createTokenCounter } from './tokens/token-counter.ts';

export type { ConfigInput } from './config/schema.ts';

/** A running gateway. Its routers work mounted in any Express 5 app; `listen` gives them servers of their own. */
export interface Gateway {
  /** The paths under `/v1`. */
  readonly router: Router;
  /** `/metrics`, the probes and `/admin`: not for the public. */
  readonly admin: Router;
  /** Opens both listeners of the config; resolves with their addresses once the database is open. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Makes a key. Its `secret` is what clients present, and is shown only here. */
  createKey(name: string, settings?: KeySettings): Promise<IssuedKey>;
  hasKeys(): Promise<boolean>;
  /** The names of the models on offer now; none while an upstream that lists them is away. */
  modelNames(): Promise<readonly string[]>;
  /** Stops accepting, lets running requests end within the drain time, then closes everything. */
  close(): Promise<void>;
}

/** What a process chooses beside its config. */
export interface GatewayOptions {
  /** The bearer token of `/admin`; made up, and so known to nobody, when it is left out here and in the config. */
  readonly adminToken?: string;
  readonly logLevel?: 'info' | 'warn' | 'silent';
  readonly clock?: Clock;
}

/** Builds a gateway from a config as it would stand in a YAML file. Throws `ConfigError` if it has faults. */
export function createGateway(input: ConfigInput, options: GatewayOptions = {}): Gateway {
  return composeGateway(checkConfig(input, 'the config'), options);
}

/** The composition root: the one place that knows every room. */
export function composeGateway(config: Config, options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const log = createLog(options.logLevel ?? 'warn');
  const tracing = createTracing(wantsTraces(process.env), clock, log.fault);
  const engine = createSqliteEngine({
    path: config.storage.url.slice('sqlite:'.length),
    durability: config.storage.durability,
  });
  const store = createStore(engine, { nextId, now: () => clock.now() });
  store
    .closeLostRecords()
    .catch((error: unknown) => log.fault('records of an earlier process could not be closed', error));
  const records = keepSettlements(store, clock, log.fault);
  const directory = createKeyDirectory(store, clock, log.fault);
  const inFlight = createInFlight();
  const health = createUpstreamHealth(clock);
  const books = createBooks(engine);
  const watch = watchBooks(store, books, clock, {
    lowBalanceNanos: config.limits.lowBalance,
    isKnown: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onFault: log.fault,
  });
  const upstreamStates = () =>
    Object.fromEntries(Object.keys(config.upstreams).map((name) => [name, health.state(name)]));
  const metrics = createMetrics({
    upstreamStates,
    books: () => watch.figures,
    settlementLagMs: () => records.lagMs(),
  });
  const limiter = createMemoryLimiter(clock);
  const upstreams = composeUpstreams(config, clock);
  const passthrough = composePassthrough(config);
  const { concurrency, requestsPerMinute, queueWait: queueWaitMs } = config.limits;
  const limits = { concurrency, requestsPerMinute, queueWaitMs };
  const ports: Ports = {
    clock,
    keys: directory,
    limiter,
    records,
    models: composeModels(config, upstreams, clock),
    upstreams,
    telemetry: createTelemetry(metrics, log),
    tracer: tracing,
    inFlight,
    health,
    random: Math.random,
    tokens: createTokenCounter(),
    balanceMode: config.limits.balanceMode,
    defaultLimits: limits,
    defaultCompatibility: config.compatibility,
  };
  const defaults = { limits, compatibility: config.compatibility };
  const keys = createKeyManagement({
    clock,
    randomBytes,
    hash: hashKey,
    forgetKeys: () => directory.forgetAll(),
    store,
  });

  const router = createPublicRouter(
    ports,
    { ...store, keys: directory, inFlight, defaults },
    passthrough,
    nextId,
    config.server.maxBody,
  );
  const admin = createAdminRouter({
    token: options.adminToken ?? config.admin.token ?? randomUUID(),
    nextId,
    keys: { keys, defaults, countInFlight: (keyId) => inFlight.count(keyId) },
    records: {
      listRecords: (filter, limit, before) => store.listRecords(filter, limit, before),
      running: () => inFlight.list(),
      cancel: (requestId) => inFlight.cancel(requestId),
      verifyLedger: () => verifyLedger(books),
    },
    metrics,
    onFault: log.fault,
    upstreamStates,
    notReady: () => whyNotReady(ports, engine),
  });
  const publicServer = createHttpServer(router, nextId);
  const adminServer = createHttpServer(admin, nextId);

  let closing: Promise<void> | null = null;
  return {
    router,
    admin,
    createKey: (name, settings) => keys.issue(name, settings),
    hasKeys: async () => (await store.countKeys()) > 0,
    async modelNames() {
      const offered = await ports.models.list();
      return isRefusal(offered) ? [] : offered.map(({ id }) => id);
    },
    async listen() {
      await Promise.all([engine.ready, tracing.ready]);
      const { server, admin: adminConfig } = config;
      const port = await startListening(publicServer, server.host, server.port);
      const adminPort = await startListening(adminServer, adminConfig.host, adminConfig.port).catch(
        (error: unknown) => {
          publicServer.close();
          throw error;
        },
      );
      return { url: address(server.host, port), adminUrl: address(adminConfig.host, adminPort) };
    },
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    publicServer.close();
    await drain(ports.inFlight, config.server.drain, clock);
    publicServer.closeAllConnections();
    await awaitSettlements(ports.inFlight, clock);
    const tracesSent = tracing.close();
    adminServer.close();
    adminServer.closeAllConnections();
    limiter.close();
    watch.stop();
    await upstreams.close();
    for (const { agent } of passthrough) agent.destroy();
    const unsettled = await records.flush();
    await engine.close();
    await tracesSent;
    if (unsettled > 0)
      throw new Error(`settlements not written: ${unsettled}. The database did not take them.`);
  }
}

async function whyNotReady({ inFlight, models }: Ports, engine: Engine): Promise<string | null> {
  if (!inFlight.accepting) return 'draining';
  const opened = await engine.ready.then(
    () => engine.broken === null,
    () => false,
  );
  if (!opened) return 'the database is not open';
  return isRefusal(await models.list()) ? 'no list of models from the upstream yet' : null;
}

function address(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function nextId(): string {
  return randomUUID().replaceAll('-', '');
}
