import type { Config } from '../../config/schema/schema.ts';
import { groupsOf } from '../../config/schema/groups-schema.ts';
import type { RecordPages } from '../../domain/ports/record-pages.ts';
import type { Retention } from '../../domain/ports/retention.ts';
import type { AdminAccess } from '../../http/admin/access.ts';
import type { AdminPorts } from '../../http/admin/router.ts';
import type { ClientAddresses } from '../../http/heads/client-addresses.ts';
import type { OwnKeyPorts } from '../../http/own-key-routes.ts';
import type { UsageReads } from '../../http/usage.ts';
import { createBudgetUse } from '../../operations/read-budget-use.ts';
import { createReadRefused } from '../../operations/read-refused.ts';
import type { Ports } from '../../pipeline/ports.ts';
import type { ConfigServices } from '../config-services.ts';
import { createWebhookManagement } from '../../operations/manage-webhooks.ts';
import { consoleFiles } from '../deferred-console.ts';
import { manual } from '../manual.ts';
import { nextId } from '../next-id.ts';
import type { ProcessServices } from '../process-services.ts';
import { whyNoneReady } from './readiness.ts';
import type { StorageServices } from '../storage/storage-services.ts';
import { listShadows } from '../worker-views.ts';

/** The same for every config. */

/** The reads of records. */
function readsOf({ store, retention }: StorageServices): RecordPages & Pick<Retention, 'removedBefore'> {
  return {
    listRecords: (filter, limit, before) => store.listRecords(filter, limit, before),
    findRecord: (requestId, keyId) => store.findRecord(requestId, keyId),
    removedBefore: () => retention.removedBefore(),
  };
}

/** The reads of usage. */
function usageReadsOf({ store, usage }: StorageServices): UsageReads {
  return {
    usage: (query) => usage.usage(query),
    namesOf: (keyIds) => store.namesOf(keyIds),
  };
}

/** The ports of `/v1/key`. */
export function composeOwnKeyPorts(
  ports: Ports,
  addresses: ClientAddresses,
  { receipts, groups }: Config,
  { storage, statements, readLimiter, readTurns, running }: ProcessServices,
): OwnKeyPorts {
  const { store } = storage;
  return {
    readLimiter,
    readTurns,
    addresses,
    keys: ports.keys,
    inFlight: running,
    onFault: ports.telemetry.fault,
    defaults: { limits: ports.defaultLimits, compatibility: ports.defaultCompatibility },
    upstreams: receipts.upstreams,
    statements,
    accounts: (keyIds) => store.accounts(keyIds),
    groups: groupsOf(groups),
    budgetUse: createBudgetUse(store, ports.clock),
    refusedToday: createReadRefused(storage.refusals, ports.clock),
    ...readsOf(storage),
    usage: usageReadsOf(storage),
  };
}

/** What operators do with keys, over one config. */
function composeKeyAdministration(
  ports: Ports,
  config: Config,
  { storage, keyManagement, running }: Pick<ProcessServices, 'storage' | 'keyManagement' | 'running'>,
): AdminPorts['keys'] {
  return {
    keys: keyManagement,
    defaults: { limits: ports.defaultLimits, compatibility: ports.defaultCompatibility },
    groups: groupsOf(config.groups),
    budgetUse: createBudgetUse(storage.store, ports.clock),
    refusedToday: createReadRefused(storage.refusals, ports.clock),
    countInFlight: (ids) => running.count(ids),
    clock: ports.clock,
    models: ports.models,
    passedPaths: config.passthrough.map(({ path }) => path),
  };
}

/** The ports of the operators' listener. */
export function composeAdminPorts(
  ports: Ports,
  config: Config,
  {
    clock,
    storage,
    events,
    keyManagement,
    maintenance,
    archiving,
    statements,
    observability,
    log,
    prepare,
    running,
    status,
    workers,
    shadowBook,
  }: ProcessServices,
  access: AdminAccess,
  reports: Pick<ConfigServices, 'whyNotReady' | 'webhooks'> &
    Pick<AdminPorts, 'upstreamReports' | 'upstreams' | 'addresses' | 'pages'>,
): AdminPorts {
  return {
    access,
    addresses: reports.addresses,
    pages: reports.pages,
    console: consoleFiles,
    onFailedLogin: (address) =>
      log.notice(
        'wrong token at the login of the console',
        address === null ? {} : { clientAddress: address },
      ),
    prepare,
    keys: composeKeyAdministration(ports, config, { storage, keyManagement, running }),
    records: {
      ...readsOf(storage),
      namesOf: (keyIds) => storage.store.namesOf(keyIds),
      running,
    },
    usage: usageReadsOf(storage),
    status,
    upstreams: reports.upstreams,
    shadows: () => listShadows(shadowBook, workers, clock),
    maintenance,
    archiving,
    webhooks: createWebhookManagement({
      deliveries: events.deliveries,
      webhooks: reports.webhooks,
      nextId,
      clock,
    }),
    statements,
    tryOut: { ports, settings: { maxBodyBytes: config.server.maxBody, addresses: reports.addresses } },
    manual,
    metrics: observability.exposed,
    onFault: log.fault,
    upstreamReports: reports.upstreamReports,
    notReady: () => whyNoneReady(reports.whyNotReady(), workers),
    sharedDatabase: storage.sharedState,
  };
}
