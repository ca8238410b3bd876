import { lookup as systemLookup } from 'node:dns';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Network, TlsSession } from '../domain/ports/network.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { createConnector, refusingLookup } from './connector.ts';
import type { ConnectionOptions } from './connector.ts';
import { describeError } from './describe-error.ts';
import { bare, targetOf } from './socket-target.ts';

/**
 * Opens connections as calls do: with the same resolver, the same refused addresses and the same deadline, and through the
 * same proxy, whose host is resolved instead of the upstream's.
 */
export function createNetwork(options: ConnectionOptions): Network {
  const connector = createConnector(options);
  const { allowLinkLocal, lookup = systemLookup, proxy } = options;
  const resolveHost = allowLinkLocal ? lookup : refusingLookup(lookup);

  /** Opens a socket, has `use` look at it, and closes it. */
  const open = <Result>(url: URL, protocol: string, use: (socket: Socket) => Result) =>
    new Promise<Result | UpstreamFault>((resolve) => {
      const target = targetOf(url, url.protocol);
      connector({ ...target, protocol }, (error, socket) => {
        if (error !== null) return resolve(faultOf(error));
        resolve(use(socket));
        socket.destroy();
      });
    });
  return {
    resolve: (url) =>
      new Promise((resolve) => {
        resolveHost(bare((proxy?.url ?? url).hostname), { all: true }, (error, found) => {
          if (error !== null) resolve(faultOf(error));
          else resolve(Array.isArray(found) ? found.map(({ address }) => address) : [found]);
        });
      }),
    connect: (url) => open(url, 'http:', describeSocket),
    secure: (url) => open(url, 'https:', (socket) => describeTls(socket as TLSSocket)),
  };
}

function describeSocket({ remoteAddress = '', remotePort, remoteFamily }: Socket): string {
  return remoteFamily === 'IPv6' ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

function describeTls(socket: TLSSocket): TlsSession {
  const expiresMs = Date.parse(socket.getPeerCertificate().valid_to);
  return { version: socket.getProtocol() ?? 'TLS', expiresMs };
}

function faultOf(error: Error): UpstreamFault {
  return { kind: 'fault', fault: 'unreachable', ...describeError(error) };
}
