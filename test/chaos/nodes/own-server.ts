import { startPostgresServer } from '../../support/postgres-server.ts';
import type { PostgresServer } from '../../support/postgres-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { playAndEnd } from './scenario.ts';
import type { ScenarioResult } from './scenario.ts';

/** Gateways that reach a PostgreSQL server of their own through a proxy. */
export interface OwnServer {
  readonly cluster: Cluster;
  readonly server: PostgresServer;
  readonly proxy: TcpProxy;
  /** A standby of the server; `useStandby` has gateways and statements of the run reach it in the server's place. */
  readonly standby: PostgresServer | null;
  useStandby(): void;
  /** The proxy through which the standby reaches the server. */
  readonly link: TcpProxy;
}

interface OwnServerOptions {
  readonly random: () => number;
  readonly hasStandby?: boolean;
}

/** Runs a scenario on a server of its own, which may be stopped and killed, and removes it afterwards. */
export async function onOwnServer(
  { random, hasStandby = false }: OwnServerOptions,
  play: (own: OwnServer) => Promise<ScenarioResult>,
): Promise<ScenarioResult> {
  const server = await startPostgresServer();
  const address = { host: '127.0.0.1', port: server.port };
  const [proxy, link] = await Promise.all([startTcpProxy(address), startTcpProxy(address)]);
  const standby = hasStandby ? await server.makeStandby(link.port) : null;
  let current = server;
  const useStandby = (): void => {
    if (standby === null) return;
    current = standby;
    proxy.target = { host: '127.0.0.1', port: standby.port };
  };
  try {
    const urls = { databaseUrl: server.url(proxy.port), directUrl: () => current.url() };
    const cluster = await startCluster({ ...urls, random });
    return await playAndEnd(cluster, () => play({ cluster, server, proxy, standby, useStandby, link }));
  } finally {
    await Promise.all([proxy.close(), link.close()]);
    await Promise.all([server.remove(), standby?.remove()]);
  }
}
