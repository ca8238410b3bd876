import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import buildConnector from 'undici/lib/core/connect.js';
import { linkLocalRefused } from '../domain/diagnosis/fault-explanations.ts';
import type { Certificates } from '../domain/ports/network.ts';
import { isLinkLocal } from '../shared/link-local.ts';
import { dialProxy, openTunnel } from './proxy.ts';
import type { Proxy } from './proxy.ts';
import type { Connector } from './socket-target.ts';

export interface ConnectionOptions {
  /** How long each of these may take, in milliseconds: the connection to the upstream or its proxy, the TLS handshake. */
  readonly connectMs: number;
  /** Whether link-local addresses, such as a cloud's metadata service, may be connected to. */
  readonly allowLinkLocal: boolean;
  /** The age at which a connection is replaced, in milliseconds; a minute by default. */
  readonly maxConnectionAgeMs?: number;
  /** Resolves host names; the system's resolver by default. */
  readonly lookup?: LookupFunction;
  /** The proxy on the way to the upstream; none by default. */
  readonly proxy?: Proxy | null;
  /** Reads the certificates of new connections: the same object as long as they are the same. */
  readonly certificates?: () => Certificates;
  /** The name that the upstream's certificate must have; that of the URL's host by default. */
  readonly serverName?: string | undefined;
}

/** The certificates of most upstreams: none but the authorities of the system. */
const systemCertificates: Certificates = {};

/**
 * Opens sockets to upstreams: within a time, with verified certificates, through the upstream's proxy if it has one, and
 * never to a refused address. One connector serves all connections to an upstream, because it has the TLS session that
 * saves the next one the full handshake.
 */
export function createConnector({
  connectMs,
  allowLinkLocal,
  lookup = systemLookup,
  proxy = null,
  certificates = () => systemCertificates,
  serverName,
}: ConnectionOptions): Connector {
  const basics = { timeout: connectMs, lookup: allowLinkLocal ? lookup : refusingLookup(lookup) };
  const secured = followCertificates(basics, certificates);
  const connect: Connector = (target, callback) =>
    secured(serverName === undefined ? target : { ...target, servername: serverName }, callback);
  if (proxy === null) return connect;
  const toProxy = keepSession(basics);
  return (target, callback) => {
    const { protocol } = target;
    if (protocol !== 'https:') return dialProxy(toProxy, proxy, callback);
    openTunnel(toProxy, { proxy, target, withinMs: connectMs }, (error, socket) => {
      if (error !== null) callback(error, null);
      else connect({ ...target, httpSocket: socket }, callback);
    });
  };
}

type Basics = Parameters<typeof buildConnector>[0];

/** A connector that is made anew when the certificates have changed: a kept session would skip the new ones. */
function followCertificates(basics: Basics, certificates: () => Certificates): Connector {
  let last = certificates();
  let connector = keepSession({ ...basics, ...last });
  return (target, callback) => {
    const now = certificates();
    if (now !== last) connector = keepSession({ ...basics, ...now });
    last = now;
    connector(target, callback);
  };
}

/** undici refers to its TLS sessions weakly: without another reference they are gone before they are used. */
function keepSession(options: Basics): Connector {
  const connect = buildConnector(options);
  const kept: { session: unknown } = { session: null };
  return (target, callback) =>
    connect(target, (...opened) => {
      opened[1]?.on('session', (session) => (kept.session = session));
      callback(...opened);
    });
}

/** Resolves host names with `lookup`, but fails for one that resolves to a link-local address. */
export function refusingLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found: string | LookupAddress[], family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found];
      const refused = error === null && (isLinkLocal(hostname) || addresses.some(isLinkLocal));
      if (!refused) return callback(error, found, family);
      const refusal = new Error(`${hostname} resolves to a link-local address, which is refused`);
      callback(Object.assign(refusal, { code: linkLocalRefused }), []);
    });
}
