import { connectionLimits, readDescriptorLimit } from '../../config/connection-limits.ts';
import { within } from '../../domain/time-limit.ts';
import { noteRefused } from '../../http/admin/acts.ts';
import { hasProof } from '../../http/admin/guard.ts';
import { keepPlaces } from '../../http/admin/places.ts';
import { createPageGuard } from '../../http/pages/own-pages.ts';
import { createRouter } from '../../http/router.ts';
import { createPublicPaths } from '../../http/listen/public-paths.ts';
import { createHttpServer, stopListening } from '../../http/server.ts';
import type { HttpServer, ListenerPorts } from '../../http/server.ts';
import { unknownOperatorsUrl } from '../../http/heads/unknown-url.ts';
import type { RunRoutes } from '../../http/standalone.ts';
import type { ConfigServices } from '../config-services.ts';
import { followCertificate } from './follow-certificate.ts';
import type { FollowedCertificate, ReadCertificate } from './follow-certificate.ts';
import { openListeners } from './open-listeners.ts';
import { nextId } from '../next-id.ts';
import type { ProcessServices } from '../process-services.ts';

/**
 * How long open connections of a process that is replaced are served, in milliseconds: a client may have just connected, or
 * send its next request on an idle connection, which would be lost if that were closed at once.
 */
const retireMs = 5_000;

/** The two listeners of a process: one for clients, one for operators. */
export type Listeners = ReturnType<typeof createListeners>;

/**
 * Creates both listeners, not yet open. `current` reads the services of the config in force, whose routes and connection
 * limits apply at once. With a certificate, clients are served over TLS.
 */
export function createListeners(
  current: () => ConfigServices,
  processServices: ProcessServices,
  firstCertificate: ReadCertificate | null,
) {
  const { clock, workers, status } = processServices;
  const certificate = followCertificate(firstCertificate, processServices);
  let isRetiring = false;
  let isOpen = false;
  const { publicServer, adminServer } = createServers(
    current,
    processServices,
    certificate,
    () => isRetiring,
  );
  return {
    /** Opens both, or neither; resolves with their addresses. */
    async open() {
      const addresses = await openListeners(publicServer, adminServer, current().config, workers === null);
      isOpen = true;
      return addresses;
    },
    /**
     * Leaves new connections of both listeners to the other processes on their ports. Requests on open connections are
     * served, and the answer to each closes its connection. Resolves when no client is connected, at the latest after
     * `retireMs`.
     */
    async retire(): Promise<void> {
      isRetiring = true;
      void stopListening(adminServer);
      await within(stopListening(publicServer), retireMs, clock);
    },
    get isOpen() {
      return isOpen;
    },
    /** Goes on taking connections, each answer closing its own, so that clients and balancers keep none for later. */
    leave: () => void (isRetiring = true),
    /** Refuses new client connections; open ones stay. */
    stopAccepting(): void {
      certificate?.stop();
      publicServer.close();
    },
    /** Cuts all client connections. */
    cutPublic: () => publicServer.closeAllConnections(),
    /** Closes the operators' listener and cuts its connections. */
    close(): void {
      // Until here operators see what is still in progress.
      status.watch.close();
      adminServer.close();
      adminServer.closeAllConnections();
    },
  };
}

/** Creates the servers of both listeners. */
function createServers(
  current: () => ConfigServices,
  processServices: ProcessServices,
  certificate: FollowedCertificate | null,
  isRetiring: () => boolean,
): { readonly publicServer: HttpServer; readonly adminServer: HttpServer } {
  const { prepare, clock, observability, workers } = processServices;
  const descriptors = readDescriptorLimit();
  const limits = () => connectionLimits(current().config.server, descriptors, workers?.count);
  const isProxy: ListenerPorts['isProxy'] = (socket) => current().addresses.isProxy(socket);
  const { timeouts, maxHead } = current().config.server;
  const shared = {
    deadlines: timeouts,
    maxHeadBytes: maxHead,
    nextId,
    clock,
    isProxy,
    onRefused: observability.onConnectionRefused,
    onRequestRefused: observability.onRequestRefused,
    isRetiring,
  };
  const paths = createPublicPaths(
    current().config.server.basePath ?? '',
    (...call) => current().router(...call),
    (method, target) => current().findDirect(method, target),
    async () => (await current().administration.notReady()) === null,
    () => ({ contact: current().config.server.contact ?? null, addresses: current().addresses }),
  );
  const publicServer = createHttpServer(paths.routes, {
    ...shared,
    prepare: (...call) => current().prepare(...call),
    crossOriginHeaders: (request) => current().crossOrigin?.headersFor(request) ?? null,
    findDirect: paths.findDirect,
    unknownUrl: paths.unknownUrl,
    limits: () => limits().public,
    certificate,
  });
  const guard = createPageGuard(
    current().config.admin.host,
    () => current().pages,
    noteRefused(() => current().administration),
  );
  const adminRoutes: RunRoutes = (...call) => current().admin(...call);
  const admin = createRouter().use(
    keepPlaces(
      () => limits().admin,
      (request) => hasProof(request, current().administration),
    ),
    guard,
    adminRoutes,
  );
  const adminServer = createHttpServer(admin, {
    ...shared,
    prepare,
    crossOriginHeaders: () => null,
    unknownUrl: unknownOperatorsUrl,
    limits: () => limits().admin,
  });
  return { publicServer, adminServer };
}
