import { connectionLimits, readDescriptorLimit } from '../config/connection-limits.ts';
import type { Config } from '../config/schema/schema.ts';
import { within } from '../domain/within.ts';
import { createPageGuard } from '../http/page-guard.ts';
import { createRouter } from '../http/router.ts';
import { createHttpServer, startListening, stopListening } from '../http/server.ts';
import { unknownOperatorsUrl, unknownUrl } from '../http/unknown-url.ts';
import type { RunRoutes } from '../http/standalone.ts';
import type { Routes } from './config-services.ts';
import { explainListenError } from './listen-error.ts';
import { nextId } from './next-id.ts';
import type { ProcessServices } from './process-services.ts';

/**
 * How long open connections of a process that is replaced are served, in milliseconds: a client may have just connected, or
 * send its next request on an idle connection, which would be lost if that were closed at once.
 */
const retireMs = 5_000;

/** The two listeners of a process: one for clients, one for operators. */
export interface Listeners {
  /** Opens both, or neither; resolves with their addresses. */
  open(config: Config): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /**
   * Leaves new connections of both listeners to the other processes on their ports. Requests on open connections are
   * served, and the answer to each closes its connection. Resolves when no client is connected, at the latest after
   * `retireMs`.
   */
  retire(): Promise<void>;
  readonly isOpen: boolean;
  /** Goes on taking connections, each answer closing its own, so that clients and balancers keep none for later. */
  leave(): void;
  /** Refuses new client connections; open ones stay. */
  stopAccepting(): void;
  /** Cuts all client connections. */
  cutPublic(): void;
  /** Closes the operators' listener and cuts its connections. */
  close(): void;
}

/**
 * Creates both listeners, not yet open. `current` reads the services of the config in force, whose routes and connection
 * limits apply at once.
 */
export function createListeners(
  current: () => Routes & { readonly config: Config },
  { prepare, clock, observability, workers }: ProcessServices,
): Listeners {
  const descriptors = readDescriptorLimit();
  const limits = () => connectionLimits(current().config.server, descriptors, workers?.count);
  let isRetiring = false;
  let isOpen = false;
  const { timeouts, maxHead } = current().config.server;
  const shared = {
    deadlines: timeouts,
    maxHeadBytes: maxHead,
    nextId,
    clock,
    prepare,
    onRefused: observability.onConnectionRefused,
    isRetiring: () => isRetiring,
  };
  const publicServer = createHttpServer((...call) => current().router(...call), {
    ...shared,
    findDirect: (request) => current().findDirect(request),
    unknownUrl,
    limits: () => limits().public,
  });
  const guard = createPageGuard(current().config.admin.host);
  const adminRoutes: RunRoutes = (...call) => current().admin(...call);
  const admin = createRouter().use(guard, adminRoutes);
  const adminServer = createHttpServer(admin, {
    ...shared,
    unknownUrl: unknownOperatorsUrl,
    limits: () => limits().admin,
  });
  return {
    async open({ server, admin: adminConfig }) {
      const port = await startListening(publicServer, server.host, server.port).catch((error: unknown) => {
        throw explainListenError(error, { section: 'server', ...server });
      });
      const adminPort = await startListening(adminServer, adminConfig.host, adminConfig.port).catch(
        (error: unknown) => {
          publicServer.close();
          throw explainListenError(error, { section: 'admin', ...adminConfig });
        },
      );
      isOpen = true;
      return { url: address(server.host, port), adminUrl: address(adminConfig.host, adminPort) };
    },
    async retire() {
      isRetiring = true;
      void stopListening(adminServer);
      await within(stopListening(publicServer), retireMs, clock);
    },
    get isOpen() {
      return isOpen;
    },
    leave: () => void (isRetiring = true),
    stopAccepting: () => void publicServer.close(),
    cutPublic: () => publicServer.closeAllConnections(),
    close() {
      adminServer.close();
      adminServer.closeAllConnections();
    },
  };
}

function address(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
