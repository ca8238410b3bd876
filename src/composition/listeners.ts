import type { Router } from 'express';
import type { Config } from '../config/schema.ts';
import { createHttpServer, startListening } from '../http/server.ts';
import { nextId } from './foundation.ts';

/** The two addresses that a process listens on: one for the public, one for operators. */
export interface Listeners {
  /** Starts both, or neither; resolves with their addresses. */
  open(config: Config): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Takes no new connections of the public; those that are open stay. */
  stopAccepting(): void;
  /** Cuts the public's connections. */
  cutPublic(): void;
  close(): void;
}

export function createListeners(router: Router, admin: Router): Listeners {
  const publicServer = createHttpServer(router, nextId);
  const adminServer = createHttpServer(admin, nextId);
  return {
    async open({ server, admin: adminConfig }) {
      const port = await startListening(publicServer, server.host, server.port);
      const adminPort = await startListening(adminServer, adminConfig.host, adminConfig.port).catch(
        (error: unknown) => {
          publicServer.close();
          throw error;
        },
      );
      return { url: address(server.host, port), adminUrl: address(adminConfig.host, adminPort) };
    },
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
