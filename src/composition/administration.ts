import { isDiscovered } from '../config/schema/schema.ts';
import type { Config } from '../config/schema/schema.ts';
import { originOf } from '../domain/diagnosis/call-target.ts';
import type { Webhook } from '../domain/ports/outbox.ts';
import type { AdminPorts } from '../http/admin/router.ts';
import type { UpstreamAdministration } from '../http/admin/upstreams.ts';
import type { OwnKeyPorts } from '../http/own-key-routes.ts';
import { knownUpstreams } from '../operations/known-upstreams.ts';
import type { ConfiguredUpstream } from '../operations/known-upstreams.ts';
import { listUpstreams } from '../operations/list-upstreams.ts';
import { createWebhookManagement } from '../operations/manage-webhooks.ts';
import { withPlaygroundKey } from '../operations/playground-key.ts';
import type { Ports } from '../pipeline/ports.ts';
import type { ActiveConfig } from './active-config.ts';
import { nextId } from './next-id.ts';
import type { ProcessServices } from './process-services.ts';
import { readWorkerViews } from './status-services.ts';
import type { Models } from './upstreams/models.ts';
import type { Surroundings } from './upstreams/upstreams.ts';

/** What one config has for operators and the holders of keys. */
interface OwnServices extends Pick<AdminPorts, 'addresses' | 'pages' | 'upstreamReports'> {
  readonly config: Config;
  readonly settings: Pick<ActiveConfig, 'groups' | 'takesImported'>;
  readonly details: Surroundings;
  readonly models: Models;
  readonly webhooks: readonly Webhook[];
  readonly whyNotReady: () => Promise<string | null>;
}

/** What keys have that no setting of their own says otherwise. */
function keyTermsOf({ defaultLimits, defaultCompatibility }: Ports, { settings }: OwnServices) {
  return {
    defaults: { limits: defaultLimits, compatibility: defaultCompatibility },
    groups: settings.groups,
  };
}

/** The ports of `/v1/key`. */
export function composeOwnKeyPorts(
  ports: Ports,
  own: OwnServices,
  { reads, readBounds, log }: ProcessServices,
): OwnKeyPorts {
  return {
    ...reads,
    ...readBounds,
    ...keyTermsOf(ports, own),
    keys: ports.keys,
    addresses: own.addresses,
    upstreams: own.config.receipts.upstreams,
    onFault: log.fault,
  };
}

/** The ports of the operators' listener: what they have of the process, and of the config. */
export function composeAdministration(
  ports: Ports,
  own: OwnServices,
  processServices: ProcessServices,
): AdminPorts {
  const { access, clock, reads, keyManagement, upstreams, workers } = processServices;
  const { config, addresses, pages, upstreamReports, webhooks } = own;
  return {
    ...processServices.administration,
    addresses,
    pages,
    records: reads,
    usage: reads.usage,
    keys: {
      ...reads,
      ...keyTermsOf(ports, own),
      keys: keyManagement,
      takesImported: own.settings.takesImported,
      isSecret: (text) => ports.keys.couldBeKey(text) || access.holderOf(text) !== null,
      clock,
      models: ports.models,
      passedPaths: config.passthrough.map(({ path }) => path),
    },
    upstreams: composeUpstreamViews(own, processServices),
    webhooks: createWebhookManagement({
      deliveries: upstreams.events.deliveries,
      webhooks,
      nextId,
      clock,
    }),
    tryOut: {
      ports,
      keysFor: (by) => withPlaygroundKey(by, ports.keys, { management: keyManagement, clock }),
      note: processServices.administration.note,
      settings: { maxBodyBytes: config.server.maxBody, addresses },
    },
    upstreamReports,
    async notReady() {
      // Any of the processes on a port may be asked for all of them.
      const reason = await own.whyNotReady();
      return reason === null || workers === null || !(await workers.isAnyReady()) ? reason : null;
    },
  };
}

/** What operators see of the upstreams of a config, and may do with them. */
function composeUpstreamViews(
  { config, models, details }: OwnServices,
  { clock, upstreams, observability, workers, doctorRuns, running }: ProcessServices,
): UpstreamAdministration {
  const isListed = isDiscovered(config.models);
  const sources = {
    upstreams: describeUpstreams(config),
    health: upstreams.health,
    upstreamLimiters: upstreams.upstreamLimiters,
    clock,
    running,
    offered: () => (isListed && models.lastGood() === null ? null : models.offered()),
    counts: () => observability.metrics.upstreamCounts(),
    workers: () => readWorkerViews(workers),
  };
  return {
    own: () => knownUpstreams(sources),
    list: () => listUpstreams(sources),
    runDoctor: (name, run) => doctorRuns.run(name, config, details, run),
  };
}

function describeUpstreams({ upstreams, models, passthrough }: Config): readonly ConfiguredUpstream[] {
  return Object.entries(upstreams).map(([name, { url, dialects, probe }]) => ({
    name,
    dialect: dialects[0] ?? 'chat',
    origin: originOf(url),
    isProbed: probe !== undefined,
    passthrough: passthrough.filter(({ upstream }) => upstream === name).map(({ path }) => path),
    isDiscovered: isDiscovered(models) && models.from === name,
  }));
}
