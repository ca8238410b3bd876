import { lookup as systemLookup } from 'node:dns';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Network, TlsSession } from '../domain/ports/network.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { createConnector } from './connections.ts';
import type { ConnectionOptions } from './connections.ts';
import { describeError } from './describe-error.ts';
import { refusingLookup } from './refusing-lookup.ts';

/** Opens connections as calls do: with the same resolver, the same refused addresses and the same deadline. */
export function createNetwork(options: ConnectionOptions): Network {
  const connector = createConnector(options);
  const { allowLinkLocal, lookup = systemLookup } = options;
  const resolveHost = allowLinkLocal ? lookup : refusingLookup(lookup);

  /** Opens a socket, has `use` look at it, and closes it. */
  const open = <Result>(url: URL, protocol: string, use: (socket: Socket) => Result) =>
    new Promise<Result | UpstreamFault>((resolve) => {
      const { hostname, host } = url;
      const port = url.port === '' ? (defaultPorts[url.protocol] ?? '') : url.port;
      connector({ hostname: bare(hostname), host, protocol, port }, (error, socket) => {
        if (error !== null) return resolve(faultOf(error));
        resolve(use(socket));
        socket.destroy();
      });
    });
  return {
    resolve: ({ hostname }) =>
      new Promise((resolve) => {
        resolveHost(bare(hostname), { all: true }, (error, found) => {
          if (error !== null) resolve(faultOf(error));
          else resolve(Array.isArray(found) ? found.map(({ address }) => address) : [found]);
        });
      }),
    connect: (url) => open(url, 'http:', describeSocket),
    secure: (url) => open(url, 'https:', (socket) => describeTls(socket as TLSSocket)),
  };
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/** A host as it is connected to: an IPv6 address without the brackets of a URL. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
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
