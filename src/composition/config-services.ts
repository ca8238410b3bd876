import { isDeepStrictEqual } from 'node:util';
import { probeUpstreams } from '../background/probe-upstreams.ts';
import { declaredKeysOf } from '../config/declared-keys.ts';
import { isDiscovered } from '../config/schema/schema.ts';
import type { Config } from '../config/schema/schema.ts';
import type { Upstreams } from '../domain/ports/upstreams.ts';
import type { AdminAccess } from '../http/admin/access.ts';
import { createAdminRouter } from '../http/admin/router.ts';
import type { AdminPorts } from '../http/admin/router.ts';
import type { FindDirect } from '../http/direct-routes.ts';
import { readOwnPages } from '../http/pages/own-pages.ts';
import type { OwnPages } from '../http/pages/own-pages.ts';
import { createPublicRouter } from '../http/public-router.ts';
import { reportUpstreams } from '../operations/report-upstreams.ts';
import type { RunRoutes } from '../http/standalone.ts';
import type { Ports } from '../pipeline/ports.ts';
import { composeClientServices } from './listeners/client-services.ts';
import type { ClientServices } from './listeners/client-services.ts';
import { activeSettingsOf } from './active-config.ts';
import type { ActiveConfig } from './active-config.ts';
import type { ProcessServices } from './process-services.ts';
import { defaultLimitsOf } from './limiter-services.ts';
import { composeAdminPorts, composeOwnKeyPorts } from './listeners/listener-ports.ts';
import type { Surroundings } from './upstreams/connections.ts';
import { whyNotReady } from './listeners/readiness.ts';
import { followUpstreamFiles } from './upstreams/upstream-files.ts';
import type { FirstFiles, FollowedFiles } from './upstreams/upstream-files.ts';
import { composeModels } from './upstreams/models.ts';
import type { Models, KeptModels } from './upstreams/models.ts';
import { composeHiddenPrompts } from './upstreams/hidden-prompts.ts';
import { composeMeasures } from './upstreams/route-measures.ts';
import { composePassthrough, composeProbes, composeUpstreams } from './upstreams/upstreams.ts';
import type { SourceDetails } from './upstreams/upstreams.ts';
import { withShadows } from './upstreams/shadows.ts';
import { composeUpstreamViews } from './upstreams/upstream-views.ts';
import { composeWebhooks } from './webhook-services.ts';
import { availabilityOf, forgetUnserved, modelStatesIn, stateIn } from './upstreams/health-states.ts';
import { isSameUpstream } from './upstreams/same-upstream.ts';

/** The routes of one config. */
export interface Routes extends ClientServices {
  /** The public paths. */
  readonly router: RunRoutes;
  /** Those of them that our own listener finds without the router. */
  readonly findDirect: FindDirect;
  /** The operators' paths. */
  readonly admin: RunRoutes;
  /** Which requests are those of the operators' own pages. */
  readonly pages: OwnPages;
}

/** The services of one config: its upstreams, its models, and the routers that serve them. */
export interface ConfigServices extends ActiveConfig, Routes {
  readonly config: Config;
  /** What operators may do with keys and requests. */
  readonly administration: AdminPorts;
  readonly models: Models;
  /** The keys and certificates of its upstreams. */
  readonly files: FollowedFiles;
  /** Stops its probes, because another config is in force. Requests that run over it go on. */
  stopBackgroundWork(): void;
  /** Resolves when the attempts to deliver events, and the shadow requests, that run over it now have ended. */
  attemptsEnded(): Promise<unknown>;
  /** Closes the connections to its upstreams; calls that still run over them break. */
  close(): Promise<void>;
}

/** A config, and the files of its upstreams, which were read before anything of it runs. */
export interface ReadConfig {
  readonly config: Config;
  readonly firstFiles: FirstFiles;
}

/** Builds the services of one config. `previous` are those that they replace. */
export function createConfigServices(
  { config, firstFiles }: ReadConfig,
  processServices: ProcessServices,
  access: AdminAccess,
  previous: ConfigServices | null,
): ConfigServices {
  const { clock, health, log, nameSettings, findProxy } = processServices;
  const files = followUpstreamFiles(firstFiles, clock, log);
  const details = { files, findProxy, nameSettings };
  const upstreams = composeUpstreams(config, details, clock);
  const calling = { upstreams, clock, health };
  const stopProbes = probeUpstreams(composeProbes(config, details), {
    ...calling,
    onChange: reportTo(log, 'upstream probe failed', 'upstream probe succeeds again'),
  });
  const names = Object.keys(config.upstreams);
  const models: Models = composeModels(
    config,
    { ...calling, onChange: reportDiscovery(log), onFound: () => forgetUnserved(models, names, health) },
    details,
    keptOf(config, previous),
  );
  const ports = composePorts(config, processServices, { upstreams, models, details });
  const receivers = composeWebhooks(config, details, clock);
  const ownReason = () => whyNotReady(ports, processServices.storage, models.problem);
  const clients = composeClientServices(config.server, processServices);
  const pages = readOwnPages(config.admin, clients.addresses);
  const adminPorts = composeAdminPorts(ports, config, processServices, access, {
    addresses: clients.addresses,
    pages,
    webhooks: receivers.webhooks,
    whyNotReady: ownReason,
    upstreamReports: () => reportUpstreams(names, health),
    upstreams: composeUpstreamViews(config, models, details, processServices),
  });
  return {
    config,
    models,
    files,
    administration: adminPorts,
    whyNotReady: ownReason,
    upstreamReports: adminPorts.upstreamReports,
    ...activeSettingsOf(config),
    webhooks: receivers.webhooks,
    declaredKeys: declaredKeysOf(config.keys),
    upstreamStates: () => Object.fromEntries(names.map((name) => [name, stateIn(health, name)])),
    upstreamModelStates: () => names.flatMap((upstream) => modelStatesIn(health, upstream)),
    modelAvailability: () => availabilityOf(models, health),
    ...createPublicRouter(
      ports,
      composeOwnKeyPorts(ports, clients.addresses, config, processServices),
      passthroughOf(config, details, processServices),
      clients.prepare,
      { maxBodyBytes: config.server.maxBody, addresses: clients.addresses },
    ),
    ...clients,
    admin: createAdminRouter(adminPorts),
    pages,
    stopBackgroundWork: stopProbes,
    attemptsEnded: () => Promise.all([receivers.idle(), ports.shadows?.idle()]),
    async close() {
      stopProbes();
      models.close();
      files.stop();
      await Promise.all([ports.shadows?.close(), upstreams.close(), receivers.close()]);
    },
  };
}

/** The paths that are passed on, and what passes them on. */
function passthroughOf(
  config: Config,
  details: Surroundings,
  { passthroughMiddlewares: middlewares }: ProcessServices,
) {
  return { paths: composePassthrough(config, details), middlewares };
}

/** What calls upstreams over one config, and how. */
interface CallingServices {
  readonly upstreams: Upstreams;
  readonly models: Models;
  readonly details: SourceDetails;
}

/** The ports of the pipeline. */
function composePorts(
  config: Config,
  processServices: ProcessServices,
  { upstreams, models, details }: CallingServices,
): Ports {
  const { storage, observability } = processServices;
  const { limits, compatibility, metering } = config;
  const ports = {
    clock: processServices.clock,
    keys: storage.keyDirectory,
    limiter: processServices.limiter,
    tokenUse: storage.tokenUse,
    records: storage.records,
    models: models.catalogue,
    upstreams,
    telemetry: observability.telemetry,
    tracer: observability.tracer,
    inFlight: processServices.inFlight,
    tokens: processServices.tokens,
    secondMeter: processServices.secondMeter,
    meteredShare: metering.sample,
    health: processServices.health,
    upstreamLimiters: processServices.limitersOfNext(),
    hedges: processServices.hedges,
    random: Math.random,
    fastPath: processServices.fastPath,
    groups: processServices.groups,
    defaultLimits: defaultLimitsOf(limits),
    balanceMode: limits.balanceMode,
    defaultCompatibility: compatibility,
  };
  return withShadows(ports, config, details, processServices);
}

/** What the models of a config keep of those of the previous one. */
function keptOf(config: Config, previous: ConfigServices | null): KeptModels {
  return {
    lastGood: lastGoodOf(config, previous),
    measureOf: composeMeasures(config, previous),
    hiddenOf: composeHiddenPrompts(config, previous),
  };
}

/** A discovered list stays valid across a reload if the new config asks the same upstream in the same way. */
function lastGoodOf(
  { models, upstreams }: Config,
  previous: ConfigServices | null,
): ReturnType<Models['lastGood']> {
  const sameSource =
    previous !== null &&
    isDiscovered(models) &&
    isDeepStrictEqual(models, previous.config.models) &&
    isSameUpstream(upstreams[models.from], previous.config.upstreams[models.from]);
  return sameSource ? previous.models.lastGood() : null;
}

function reportDiscovery(log: ProcessServices['log']): ReturnType<typeof reportTo> {
  return reportTo(log, 'model discovery failed', 'model discovery succeeds again');
}

/** Logs a changed fault of an upstream, and its end. */
function reportTo(
  log: ProcessServices['log'],
  failed: string,
  succeeds: string,
): (upstream: string, fault: string | null) => void {
  return (upstream, fault) => {
    if (fault === null) log.notice(succeeds, { upstream });
    else log.fault(failed, fault, { upstream });
  };
}
