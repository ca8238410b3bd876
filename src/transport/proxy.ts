import { request as sendRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { Forwarding, UpstreamFault } from '../domain/ports/upstreams.ts';
import { describeError } from './describe-error.ts';
import { proxyPrefix, proxyStatusPrefix } from '../domain/diagnosis/proxy-explanations.ts';
import { targetOf } from './socket-target.ts';
import type { Connector } from './socket-target.ts';

/** An HTTP proxy. */
export interface Proxy {
  /** Its address; only its scheme, host and port count. */
  readonly url: URL;
  /** What it is sent as `proxy-authorization`, which holds a password; `null` if it asks for none. */
  readonly authorization: string | null;
}

/** How requests are sent on connections to an upstream; `null` where no proxy reads them. */
export function forwardingOf({ origin, protocol }: URL, proxy: Proxy | null | undefined): Forwarding | null {
  if (protocol !== 'http:' || proxy === null || proxy === undefined) return null;
  return { origin, headers: headersFor(proxy), faultOf };
}

function headersFor({ authorization }: Proxy): Record<string, string> {
  return authorization === null ? {} : { 'proxy-authorization': authorization };
}

/** The status with which a proxy asks for a user and password. */
const credentialsAsked = 407;

function faultOf(status: number): UpstreamFault | null {
  if (status !== credentialsAsked) return null;
  return { kind: 'fault', fault: 'unreachable', ...describeError(refusedByProxy(status)) };
}

/** The error of a proxy that answered with another status than it should. */
function refusedByProxy(status: number): Error {
  return proxyError(`${proxyStatusPrefix}${status}`, `the proxy answered with status ${status}`);
}

function proxyError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Opens a connection to the proxy itself. */
export function dialProxy(connect: Connector, { url }: Proxy, callback: Parameters<Connector>[1]): void {
  connect(targetOf(url, url.protocol), (error, socket) => {
    if (error === null) return callback(null, socket);
    // undici tries some codes again without end: those of the proxy must differ.
    const { code, cause } = describeError(error);
    callback(proxyError(`${proxyPrefix}${code}`, cause), null);
  });
}

/** A tunnel through a proxy. */
interface TunnelOptions {
  readonly proxy: Proxy;
  /** Where it leads. */
  readonly target: Parameters<Connector>[0];
  /** How long it may take to open, in milliseconds. */
  readonly withinMs: number;
}

/** Opens a tunnel to a target through a proxy, which sees nothing of what is sent in it but the target's address. */
export function openTunnel(
  connect: Connector,
  { proxy, target: { hostname, port, protocol }, withinMs }: TunnelOptions,
  callback: (...opened: [Error, null] | [null, Socket]) => void,
): void {
  const startedMs = performance.now();
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  const authority = `${host}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
  dialProxy(connect, proxy, (error, socket) => {
    if (error !== null) return callback(error, null);
    const headers = { host: authority, connection: 'keep-alive', ...headersFor(proxy) };
    const request = sendRequest({
      method: 'CONNECT',
      path: authority,
      headers,
      createConnection: () => socket,
    });
    const leftMs = Math.max(withinMs - (performance.now() - startedMs), 1);
    const timer = setTimeout(
      () => request.destroy(proxyError('ETIMEDOUT', 'no answer to CONNECT in time')),
      leftMs,
    );
    const fail = (fault: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      callback(fault, null);
    };
    request.once('error', (fault) => {
      const { code, cause } = describeError(fault);
      fail(proxyError(`${proxyPrefix}${code}`, cause));
    });
    request.once('connect', (answer, _socket, early) => {
      const status = answer.statusCode ?? 0;
      // Node has removed its own listener, and until the TLS handshake there is no other.
      socket.on('error', () => {});
      if (status < 200 || status > 299) return fail(refusedByProxy(status));
      if (early.length > 0) return fail(proxyError(`${proxyPrefix}EARLY`, 'bytes before the TLS handshake'));
      clearTimeout(timer);
      callback(null, socket);
    });
    request.end();
  });
}
