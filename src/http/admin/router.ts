import type { AuditTrail } from '../../domain/ports/audit.ts';
import type { Manual } from '../../domain/ports/manual.ts';
import type { ShadowView } from '../../domain/shadows/shadow-book.ts';
import type { SharedDatabaseState } from '../../domain/ports/shared-changes.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { RecordArchiving } from '../../operations/archive-records.ts';
import type { Maintenance } from '../../operations/maintenance.ts';
import type { WebhookManagement } from '../../operations/manage-webhooks.ts';
import type { Statements } from '../../operations/statements.ts';
import type { reportUpstreams } from '../../operations/report-upstreams.ts';
import { createConsoleRoutes } from '../console/routes.ts';
import type { ConsolePorts } from '../console/routes.ts';
import { adminActs, noteRequests } from './acts.ts';
import { createArchiveRoutes } from './archive.ts';
import { createAuditRoutes } from './audit.ts';
import { createGroupRoutes } from './groups.ts';
import { createHistoryRoutes } from './history.ts';
import type { HistoryPorts } from './history.ts';
import { createAdminGuard } from './guard.ts';
import { createKeyRoutes, createKeyOperations } from './keys.ts';
import type { KeyAdministration } from './keys.ts';
import { createMaintenanceRoutes } from './maintenance.ts';
import { createManualRoutes } from './manual.ts';
import { createRecordRoutes } from './records.ts';
import { createWebhookRoutes } from './webhooks.ts';
import { createStatementRoutes } from './statements.ts';
import { createStatusRoutes } from './status.ts';
import type { StatusPorts } from './status.ts';
import { failureQuery, readFailures } from './failures.ts';
import type { FailureReads } from './failures.ts';
import { latencyQuery, readLatencies } from './latency.ts';
import type { LatencyReads } from './latency.ts';
import { createTryOutRoutes } from './try-out.ts';
import type { TryOutPorts } from './try-out.ts';
import { createUpstreamRoutes } from './upstreams.ts';
import type { UpstreamAdministration } from './upstreams.ts';
import { answerUsage, readUsage, usageQuery } from '../usage.ts';
import type { UsageReads } from '../usage.ts';
import { readWholeQuery } from '../checked-input.ts';
import { presentList } from '../present/list.ts';
import { presentShadow } from '../present/shadow.ts';
import { refuseFaults } from '../fallback-handlers.ts';
import { presentSharedDatabase } from '../present/shared-database.ts';
import { sendAnswer, sendBody } from '../answers/respond.ts';
import { unknownOperatorsUrl } from '../heads/unknown-url.ts';
import { addRoutes } from '../route-table.ts';
import { isRefusal } from '../../shared/errors.ts';
import { createRouter } from '../router.ts';
import type { RequestHandler, Router } from '../router.ts';

/** The dependencies of the admin listener's routes. */
export interface AdminPorts extends ConsolePorts {
  /** The first handler of every request. */
  readonly prepare: RequestHandler;
  readonly keys: KeyAdministration;
  readonly records: FailureReads & LatencyReads;
  readonly usage: UsageReads;
  readonly status: StatusPorts;
  readonly history: HistoryPorts;
  readonly upstreams: UpstreamAdministration;
  /** The shadow routes of the config in force. */
  readonly shadows: () => Promise<readonly ShadowView[]>;
  readonly maintenance: Maintenance;
  readonly manual: Manual;
  readonly archiving: RecordArchiving;
  readonly webhooks: WebhookManagement;
  readonly statements: Statements;
  readonly audit: Pick<AuditTrail, 'list'>;
  readonly tryOut: TryOutPorts;
  readonly metrics: { expose(): Promise<{ readonly contentType: string; readonly body: string }> };
  readonly onFault: ReportFault;
  /** The report on each upstream by name. It does not affect readiness: other replicas have the same upstreams. */
  readonly upstreamReports: () => ReturnType<typeof reportUpstreams>;
  /** The reason why the service can't take requests now; `null` when it can. */
  notReady(): Promise<string | null>;
  /** The state of a database that nodes share; `null` for one that is this process's own. */
  readonly sharedDatabase: (() => Promise<SharedDatabaseState>) | null;
}

/**
 * Creates the admin routes: metrics, probes and the documentation without a token, as scrapers and readers expect them,
 * the console's files and its login, and `/admin` with a token or a session.
 */
export function createAdminRouter(ports: AdminPorts): Router {
  const router = createRouter({ caseSensitive: true });
  router.use(['/metrics', '/healthz', '/readyz', '/docs', '/console', '/admin'], ports.prepare);
  router.get('/metrics', async (_request, response) => {
    const { contentType, body } = await ports.metrics.expose();
    sendBody(response, 200, body, { 'content-type': contentType });
  });
  router.get('/healthz', (_request, response) => sendAnswer(response, 200, { status: 'ok' }));
  router.get('/readyz', async (_request, response) => {
    const [reason, database] = await Promise.all([ports.notReady(), ports.sharedDatabase?.()]);
    const details = {
      upstreams: ports.upstreamReports(),
      ...(database === undefined ? {} : { database: presentSharedDatabase(database) }),
    };
    if (reason === null) sendAnswer(response, 200, { status: 'ready', ...details });
    else sendAnswer(response, 503, { status: 'not ready', reason, ...details });
  });
  router.use(createManualRoutes(ports.manual));
  router.use('/docs', unknownOperatorsUrl);
  router.use(createConsoleRoutes(ports));
  router.use('/console', unknownOperatorsUrl);
  router.use('/admin', noteRequests(adminActs, ports.note, ports));
  router.use('/admin', createAdminGuard(ports));
  router.use('/admin/keys', createKeyRoutes(createKeyOperations(ports.keys)));
  router.use('/admin', createGroupRoutes(ports.keys));
  router.use('/admin', createStatementRoutes(ports.statements, ports.keys.keys));
  router.use('/admin', createRecordRoutes(ports.records));
  router.use('/admin', createAuditRoutes(ports.audit, ports.records));
  router.use('/admin', createStatusRoutes(ports.status));
  router.use('/admin', createHistoryRoutes(ports.history));
  router.use('/admin/upstreams', createUpstreamRoutes(ports.upstreams));
  router.use('/admin', createListRoutes(ports));
  router.use('/admin', createMaintenanceRoutes(ports.maintenance));
  router.use('/admin', createArchiveRoutes(ports.archiving));
  router.use('/admin/webhooks', createWebhookRoutes(ports.webhooks));
  router.use('/admin', createTryOutRoutes(ports.tryOut));
  router.use('/admin', unknownOperatorsUrl);
  router.use(refuseFaults(ports.onFault));
  return router;
}

/** The routes `/admin/usage`, `/admin/failures`, `/admin/latency` and `/admin/shadow`. */
function createListRoutes({ usage, shadows, records }: AdminPorts): Router {
  return addRoutes(createRouter(), {
    'GET /failures': async (request) => {
      const query = readWholeQuery(request, failureQuery, 'This report');
      return isRefusal(query) ? query : readFailures(query, records);
    },
    'GET /usage': async (request, response) =>
      answerUsage(request, response, await readUsage(readWholeQuery(request, usageQuery, 'Usage'), usage)),
    'GET /latency': async (request) => {
      const query = readWholeQuery(request, latencyQuery, 'This report');
      return isRefusal(query) ? query : readLatencies(query, records);
    },
    'GET /shadow': async () => presentList((await shadows()).map(presentShadow), null),
  });
}
