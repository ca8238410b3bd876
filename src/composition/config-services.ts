import { probeUpstreams } from '../background/probe-upstreams.ts';
import { declaredKeysOf } from '../config/declared-keys.ts';
import { describeOldPrices } from '../config/list-prices.ts';
import { networksOf } from '../config/schema/server-schema.ts';
import type { Config } from '../config/schema/schema.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { UpstreamState } from '../domain/upstreams/circuit.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { createAdminRouter } from '../http/admin/router.ts';
import { readClientAddresses } from '../http/heads/client-addresses.ts';
import type { ClientAddresses } from '../http/heads/client-addresses.ts';
import { readCrossOrigin } from '../http/heads/cross-origin.ts';
import { readOwnPages } from '../http/pages/own-pages.ts';
import { createPublicRouter } from '../http/public-router.ts';
import { reportUpstreams } from '../operations/report-upstreams.ts';
import type { Ports, SettledObserver } from '../pipeline/ports.ts';
import { createShadows, tellShadow } from '../pipeline/shadows/shadows.ts';
import type { Shadows } from '../pipeline/shadows/shadows.ts';
import { isRefusal } from '../shared/errors.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { activeSettingsOf } from './active-config.ts';
import { composeAdministration, composeOwnKeyPorts } from './administration.ts';
import type { ProcessServices } from './process-services.ts';
import type { StorageServices } from './storage/storage-services.ts';
import { keepModels } from './upstreams/kept-models.ts';
import type { PreviousConfig } from './upstreams/kept-models.ts';
import { composeModels, forgetUnserved, shadowRoutesOf } from './upstreams/models.ts';
import type { Models } from './upstreams/models.ts';
import { followUpstreamFiles } from './upstreams/upstream-files.ts';
import type { FirstFiles } from './upstreams/upstream-files.ts';
import { composePassthrough, composeProbes, composeUpstreams } from './upstreams/upstreams.ts';
import type { SourceDetails } from './upstreams/upstreams.ts';
import { composeWebhooks } from './webhook-services.ts';

/** A config, and the files of its upstreams, which were read before anything of it runs. */
export interface ReadConfig {
  readonly config: Config;
  readonly firstFiles: FirstFiles;
}

/** The services of one config: its upstreams, its models, and the routes that serve them. */
export type ConfigServices = ReturnType<typeof createConfigServices>;

/** Builds the services of one config. `previous` are those that they replace. */
export function createConfigServices(
  { config, firstFiles }: ReadConfig,
  processServices: ProcessServices,
  previous: PreviousConfig | null,
) {
  const { clock, log, storage, nameSettings, findProxy } = processServices;
  const { health } = processServices.upstreams;
  const { server } = config;
  const names = Object.keys(config.upstreams);
  const settings = activeSettingsOf(config);

  const files = followUpstreamFiles(firstFiles, clock, log);
  const details = { files, findProxy, nameSettings };
  const upstreams = composeUpstreams(config, details, clock);
  const calling = { upstreams, clock, health };
  const stopProbes = probeUpstreams(composeProbes(config, details), {
    ...calling,
    onChange: reportTo(log, 'upstream probe failed', 'upstream probe succeeds again'),
  });
  const discovery = {
    ...calling,
    onChange: reportTo(log, 'model discovery failed', 'model discovery succeeds again'),
    onFound: () => forgetUnserved(models, names, health),
  };
  const models: Models = composeModels(config, discovery, details, keepModels(config, previous));
  noteOldPrices(config, clock, log);

  const ports = composePorts({ config, settings, upstreams, models, details }, processServices);
  const { shadows } = ports;

  const crossOrigin = readCrossOrigin(server.corsOrigins);
  const prepare = processServices.preparePublic(crossOrigin);
  const addresses = addressesOf(server);
  const receivers = composeWebhooks(config, details, clock);
  const own = {
    config,
    details,
    models,
    settings,
    addresses,
    pages: readOwnPages(config.admin, addresses),
    webhooks: receivers.webhooks,
    upstreamReports: () => reportUpstreams(names, health),
    whyNotReady: () => whyNotReady(ports, storage, models),
  };
  const administration = composeAdministration(ports, own, processServices);
  return {
    ...own,
    ...settings,
    /** The keys and certificates of its upstreams. */
    files,
    administration,
    declaredKeys: declaredKeysOf(config.keys),
    ...statesOf(names, models, health),
    /** `null` where no web page may call the gateway. */
    crossOrigin,
    /** The first handler of every request of clients. */
    prepare,
    /** The public paths: `router`, and `findDirect` for those that our own listener finds without it. */
    ...createPublicRouter(
      ports,
      composeOwnKeyPorts(ports, own, processServices),
      { paths: composePassthrough(config, details), middlewares: processServices.passthroughMiddlewares },
      prepare,
      { maxBodyBytes: server.maxBody, addresses },
    ),
    /** The operators' paths. */
    admin: createAdminRouter(administration),
    /** Stops its probes, because another config is in force. Requests that run over it go on. */
    stopBackgroundWork: stopProbes,
    /** Resolves when the attempts to deliver events, and the shadow requests, that run over it now have ended. */
    attemptsEnded: () => Promise.all([receivers.idle(), shadows?.idle()]),
    /** Closes the connections to its upstreams; calls that still run over them break. */
    async close(): Promise<void> {
      stopProbes();
      models.close();
      files.stop();
      await Promise.all([shadows?.close(), upstreams.close(), receivers.close()]);
    },
  };
}

/** Logs that the list of prices is old, where a config has prices of it. */
function noteOldPrices(config: Config, clock: Clock, log: Log): void {
  const age = describeOldPrices(config, clock.now());
  if (age !== null) log.notice(age);
}

/** The addresses of clients; they are logged where the config says so, or names proxies that report them. */
function addressesOf({ trustedProxies, logAddresses }: Config['server']): ClientAddresses {
  return readClientAddresses(networksOf(trustedProxies), logAddresses ?? trustedProxies.length > 0);
}

/** What calls upstreams over one config. */
interface CallingServices {
  readonly config: Config;
  readonly settings: ReturnType<typeof activeSettingsOf>;
  readonly upstreams: Upstreams;
  readonly models: Models;
  readonly details: SourceDetails;
}

/**
 * What requests for text use: of the process, and of the config; with what it does with its shadows, which are counted from now
 * on.
 */
function composePorts(
  { config, settings, upstreams, models, details }: CallingServices,
  processServices: ProcessServices,
): Ports & { readonly shadows: Shadows | null } {
  const { clock, keys, limiter, inFlight, claims, tokens, fastPath, groups, features } = processServices;
  const { tokenUse, records } = processServices.storage;
  const { telemetry, tracer } = processServices.observability;
  const { health, hedges, limitersOfNext } = processServices.upstreams;
  const ports = {
    clock,
    keys,
    limiter,
    tokenUse,
    records,
    models: models.catalogue,
    upstreams,
    telemetry,
    tracer,
    inFlight,
    claims,
    tokens,
    health,
    upstreamLimiters: limitersOfNext(),
    hedges,
    random: Math.random,
    fastPath,
    groups,
    defaultLimits: settings.defaultLimits,
    balanceMode: config.limits.balanceMode,
    defaultCompatibility: config.compatibility,
  };
  const book = processServices.shadowBook;
  const routes = shadowRoutesOf(config, details);
  book.configure(routes);
  const hasShadows = routes.length > 0;
  const settled: SettledObserver[] = hasShadows ? [tellShadow] : [];
  features.addObservers(config, settled);
  return { ...ports, settled, shadows: hasShadows ? createShadows(routes, { ...ports, book }) : null };
}

/** The states of upstreams and models, for the metrics. */
function statesOf(names: readonly string[], models: Models, health: UpstreamHealth) {
  const stateOf = (name: string): UpstreamState => (health.pauseMs(name) > 0 ? 'open' : health.state(name));
  const modelsOf = (upstream: string): readonly string[] => [...health.circuits(upstream).models.keys()];
  return {
    upstreamStates: () => Object.fromEntries(names.map((name) => [name, stateOf(name)] as const)),
    upstreamModelStates: () =>
      names.flatMap((upstream) =>
        modelsOf(upstream).map((model) => {
          return { upstream, model, state: health.targetState({ upstream, model }) };
        }),
      ),
    // A route works with the circuits of its upstream and of its model there.
    modelAvailability: () =>
      [...models.offered()].map(({ id, routes }) => {
        return [id, routes.some((route) => health.targetState(route) === 'closed')] as const;
      }),
  };
}

/** The reason why this process can't take requests now; `null` when it can. */
async function whyNotReady(
  { inFlight }: Ports,
  { writeCheck, engine }: StorageServices,
  models: Models,
): Promise<string | null> {
  if (!inFlight.accepting) return 'draining';
  if (inFlight.isLeaving) return 'shutting down';
  const writeFault = await writeCheck.fault();
  if (writeFault !== null) return `the database does not accept writes: ${writeFault}`;
  if (engine.impaired !== null) return engine.impaired;
  if (!isRefusal(await models.catalogue.list())) return null;
  const problem = models.problem();
  return `no list of models from the upstream yet${problem === null ? '' : `: ${problem}`}`;
}

/** Logs a changed fault of an upstream, and its end. */
function reportTo(
  log: Log,
  failed: string,
  succeeds: string,
): (upstream: string, fault: string | null) => void {
  return (upstream, fault) => {
    if (fault === null) log.notice(succeeds, { upstream });
    else log.fault(failed, fault, { upstream });
  };
}
