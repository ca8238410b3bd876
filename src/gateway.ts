import { invalidConfig } from './background/note-configs.ts';
import { followAdminTokens } from './composition/admin-tokens.ts';
import { createActiveServices } from './composition/active-services.ts';
import type { ActiveServices } from './composition/active-services.ts';
import { systemClock } from './composition/clock.ts';
import { readCertificate } from './composition/listeners/follow-certificate.ts';
import { createListeners } from './composition/listeners/listeners.ts';
import type { Listeners } from './composition/listeners/listeners.ts';
import type { ConfigServices } from './composition/config-services.ts';
import { createManagement } from './composition/management.ts';
import type { Management } from './composition/management.ts';
import { createProcessServices } from './composition/process-services.ts';
import type { ProcessServices } from './composition/process-services.ts';
import { readUpstreamFiles } from './composition/upstreams/upstream-files.ts';
import { readProxyEnvironment } from './config/proxy-environment.ts';
import { readFastPath, readTracingSettings } from './config/environment.ts';
import type { NameSettings } from './composition/upstreams/upstreams.ts';
import { checkConfig } from './config/load.ts';
import type { Config, ConfigInput } from './config/schema/schema.ts';
import { namesInConfig } from './config/setting-names.ts';
import type { Actor } from './domain/audit/audit-line.ts';
import type { Clock } from './domain/ports/clock.ts';
import type { Workers } from './domain/ports/workers.ts';
import type { FetchedModelList } from './models/model-discovery.ts';
import { createAdminAccess } from './http/admin/access.ts';
import { answerFetch } from './http/fetch.ts';
import type { Prepare } from './http/answers/prepare-answers.ts';
import { createNodeHandler } from './http/standalone.ts';
import type { NodeHandler } from './http/standalone.ts';
import { unknownOperatorsUrl, unknownUrl } from './http/heads/unknown-url.ts';
import { hasActiveKey } from './operations/key-use.ts';
import type { ProcessViews } from './operations/process-views.ts';
import { awaitSettlements, drain, interruptForCrash } from './pipeline/in-flight.ts';
import { isRefusal } from './shared/errors.ts';
import { createLog } from './telemetry/log/logger.ts';
import type { Log, LogFormat, LogLevel } from './telemetry/log/logger.ts';
import type { MetricsText } from './telemetry/metrics/metric-sums.ts';

/**
 * A running gateway: `router` and `fetch` serve its paths inside an app, `listen` opens servers for them. The methods of
 * `Management` do from code what the admin API does.
 */
export interface Gateway extends Management {
  /** The paths under `/v1` and the passthrough paths; other requests go to `next`. */
  readonly router: NodeHandler;
  /** `/metrics`, the health probes and `/admin`: for operators, not for the public. */
  readonly admin: NodeHandler;
  /**
   * Serves the paths of `router` for hosts with the Fetch API, such as Hono and Next; every other path is a 404.
   * Resolves with the head of the answer; a body that breaks off is an error of its stream. The client counts as
   * disconnected when `request.signal` is raised or the body is cancelled.
   */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Opens both listeners of the config; resolves with their addresses once the database is open. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Whether any key exists or is declared. */
  hasKeys(): Promise<boolean>;
  /** The names of the models on offer; none until the upstream that lists them has answered. */
  modelNames(): Promise<readonly string[]>;
  /**
   * Replaces the config in force, whole or not at all: throws `ConfigError` if the new one has faults. Running requests
   * finish under the old one. Returns the settings that differ and that only a restart changes, such as `server.port`.
   */
  reload(input: ConfigInput): readonly string[];
  /**
   * Resolves with the reason when the database is lost, as when its file was deleted: new requests are refused from then
   * on. The process should call `close`, which saves the database, and end with an error.
   */
  readonly failed: Promise<Error>;
  /**
   * Stops accepting requests, waits up to the drain time for running ones, then closes everything, the log last. Later
   * requests and calls are refused with the code `draining`.
   */
  close(): Promise<void>;
}

/** Settings of a process that are not part of its config. */
export interface GatewayOptions {
  /** The bearer token of `/admin`. Without one here or in the config it is random, and `/admin` can't be used. */
  readonly adminToken?: string;
  readonly logLevel?: LogLevel;
  /** Lines for people, or JSON; by default, JSON unless standard output is a terminal. */
  readonly logFormat?: LogFormat;
  /** Receives the log, one line at a time; the default is standard output. */
  readonly logDestination?: { write(line: string): void };
  readonly clock?: Clock;
}

/** What `textgate serve` uses beside `Gateway`: it reads and checks the config file itself. */
export interface ComposedGateway extends Gateway {
  /** The metrics of this process, to be added to those of other workers. */
  figures(): Promise<MetricsText>;
  /** What this process alone knows of the status, as JSON. */
  ownStatus(): Promise<string>;
  /** What this process alone knows of upstreams and shadow routes, as JSON. */
  ownViews(): Promise<string>;
  /** The reason why this process can't take requests now; `null` when it can. */
  whyNotReady(): Promise<string | null>;
  /** Leaves new connections to the other workers, and serves the open ones until they are closed, for a few seconds. */
  retire(): Promise<void>;
  /**
   * Is not ready from now on, and still takes requests for `server.shutdownDelay`, so that balancers have the time to notice;
   * for no time while the listeners are not open. `over` resolves after `delayMs`.
   */
  leave(): { readonly delayMs: number; readonly over: Promise<void> };
  /**
   * Fetches the list of models where an upstream lists them; `null` in other configs. A list that failed is fetched again
   * for later requests.
   */
  fetchModelList(): Promise<FetchedModelList | null>;
  /** Makes a key if none exists or is declared; resolves with its secret, or with `null`. One of several nodes makes it. */
  createFirstKey(): Promise<string | null>;
  /** Whether any key can be used now. */
  hasActiveKey(): Promise<boolean>;
  /** Puts a checked config into force. Of several workers that do so at once, one counts it (`isCounted`). */
  replaceConfig(config: Config, isCounted?: boolean): readonly string[];
  /** Logs and counts a config that could not be put into force; the old one stays. */
  reloadFailed(error: unknown): void;
  /**
   * Shuts down at once after an uncaught error: logs it, ends every running answer with an error, settles what was
   * delivered and closes everything. May be called during `close`.
   */
  crash(error: unknown): Promise<void>;
  /** How long `close` may take before it counts as hanging, in milliseconds. */
  readonly closeLimitMs: () => number;
}

/** Builds a gateway from a config in the shape of the YAML file. Throws `ConfigError` if it has faults. */
export function createGateway(input: ConfigInput, options: GatewayOptions = {}): Gateway {
  return composeGateway(checkConfig(input, 'the config'), options);
}

/** Who makes the first key. */
const atStart: Actor = { way: 'start', name: null, address: null };

/** What closing may take beside the drain time, in milliseconds: settlements, the database, traces and the log. */
const closeGraceMs = 20_000;

/**
 * The composition root: builds the gateway of a checked config from every folder. `nameSettings` names the settings of an
 * upstream in messages for the operator; `workers` are the processes that share its ports.
 */
export function composeGateway(
  config: Config,
  options: GatewayOptions,
  nameSettings: NameSettings = namesInConfig,
  workers: Workers | null = null,
): ComposedGateway {
  const { clock = systemClock, logLevel = 'warn', logDestination, logFormat } = options;
  // Before anything is opened, which would stay open if one of them can't be read.
  const [firstFiles, firstCertificate] = [readUpstreamFiles(config), readCertificate(config)];
  const tokensOf = followAdminTokens(config, options.adminToken);
  const settings = {
    tracing: readTracingSettings(),
    fastPath: readFastPath(),
    findProxy: readProxyEnvironment(),
    nameSettings,
    workers,
    access: createAdminAccess(tokensOf(config), clock),
  };
  const log = createLog(logLevel, clock, logDestination, logFormat, workers?.own);
  const processServices = createProcessServices(config, settings, clock, log);
  const active = createActiveServices({ config, firstFiles }, processServices);
  const current = (): ConfigServices => active.current;
  const listeners = createListeners(current, processServices, firstCertificate);

  const { storage, inFlight, tokens } = processServices;
  const reloads = reportReloads(log, processServices);
  const declaresKeys = (): boolean => current().declaredKeys.length > 0;
  const replaceConfig = (next: Config, isCounted = true): readonly string[] => {
    if (closing !== null) throw new Error('the gateway is closing');
    const [nextTokens, needRestart] = [tokensOf(next), active.replace(next)];
    settings.access.replaceTokens(nextTokens);
    if (isCounted) reloads.succeeded();
    return needRestart;
  };
  let closing: Promise<void> | null = null;
  const closeAfter = (endRequests: () => Promise<void>): Promise<void> =>
    (closing ??= closeAll(listeners, active, processServices, endRequests));

  return {
    ...createManagement(() => current().administration, processServices.isClosed),
    ...createHandlers(current, processServices),
    failed: storage.engine.lost,
    hasKeys: async () => declaresKeys() || (await storage.store.countKeys()) > 0,
    async createFirstKey() {
      if (declaresKeys()) return null;
      return (await processServices.keyManagement.issueFirst(atStart, 'first key'))?.secret ?? null;
    },
    hasActiveKey: () => hasActiveKey(storage.store, clock.now()),
    async modelNames() {
      const offered = await current().models.catalogue.list();
      return isRefusal(offered) ? [] : offered.map(({ id }) => id);
    },
    fetchModelList: () => current().models.fetchList(),
    async listen() {
      await processServices.ready();
      return listeners.open();
    },
    reload: (input) => replaceConfig(checkConfig(input, 'the config')),
    replaceConfig,
    reloadFailed(error) {
      reloads.failed(error);
      processServices.administration.note(invalidConfig);
    },
    ...workerMethods(current, processServices, listeners),
    close: () => closeAfter(() => drain(inFlight, tokens, current().config.server.drain, clock)),
    async crash(error) {
      log.crash(error);
      const ended = interruptForCrash(inFlight, tokens, clock);
      await closeAfter(() => ended);
    },
    closeLimitMs: () => current().config.server.drain + closeGraceMs,
  };
}

/** Ends the requests, and closes everything, the log last. */
async function closeAll(
  listeners: Listeners,
  active: ActiveServices,
  processServices: ProcessServices,
  endRequests: () => Promise<void>,
): Promise<void> {
  const { inFlight, clock, log } = processServices;
  try {
    listeners.stopAccepting();
    await endRequests();
    const { count, named } = inFlight.unended();
    if (count > 0) log.fault('requests did not end in time: their connections are cut', named, { count });
    listeners.cutPublic();
    await awaitSettlements(inFlight, clock);
    listeners.close();
    await active.close();
    await processServices.close();
  } finally {
    await log.close();
  }
}

/** The gateway's paths as other hosts serve them. */
function createHandlers(
  current: () => ConfigServices,
  { prepare }: ProcessServices,
): Pick<Gateway, 'router' | 'admin' | 'fetch'> {
  const preparePublic: Prepare = (...call) => current().prepare(...call);
  const router = createNodeHandler((...call) => current().router(...call), preparePublic, unknownUrl);
  const admin = createNodeHandler((...call) => current().admin(...call), prepare, unknownOperatorsUrl);
  return { router, admin, fetch: (request) => answerFetch(request, router) };
}

/** What the process of a gateway does with it, and the primary process of several workers with each. */
function workerMethods(
  current: () => ConfigServices,
  { observability, status, shadowBook, inFlight, clock }: ProcessServices,
  listeners: Listeners,
): Pick<ComposedGateway, 'figures' | 'ownStatus' | 'ownViews' | 'whyNotReady' | 'retire' | 'leave'> {
  return {
    figures: () => observability.metrics.figures(),
    ownStatus: () => status.readOwn(),
    async ownViews() {
      const upstreams = current().administration.upstreams.own();
      return JSON.stringify({ upstreams, shadows: shadowBook.views() } satisfies ProcessViews);
    },
    whyNotReady: () => current().whyNotReady(),
    retire: () => listeners.retire(),
    leave() {
      inFlight.leave();
      const delayMs = listeners.isOpen ? current().config.server.shutdownDelay : 0;
      if (delayMs === 0) return { delayMs, over: Promise.resolve() };
      listeners.leave();
      return { delayMs, over: new Promise((resolve) => clock.schedule(delayMs, resolve)) };
    },
  };
}

/** Counts reloads of the config, and logs those that fail, and the first one that succeeds again. */
function reportReloads(
  log: Log,
  { observability: { metrics }, history }: Pick<ProcessServices, 'observability' | 'history'>,
) {
  let isFailing = false;
  return {
    succeeded(): void {
      metrics.configReloaded('ok');
      history.mark('config_loaded');
      if (isFailing) log.notice('config reload succeeds again');
      isFailing = false;
    },
    failed(error: unknown): void {
      metrics.configReloaded('failed');
      history.mark('config_refused');
      isFailing = true;
      log.fault('config reload failed: the previous config stays in force', error);
    },
  };
}
