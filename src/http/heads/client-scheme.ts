import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { ClientAddresses } from './client-addresses.ts';

/** How a client reached this process or the proxy in front of it. */
export type Scheme = 'http' | 'https';

/**
 * The scheme of the address that a client called: that of the connection, or the one that a trusted proxy reports in
 * `X-Forwarded-Proto`, where the nearest proxy wrote last.
 */
export function schemeOf({ socket, headers }: IncomingMessage, addresses: ClientAddresses): Scheme {
  const own: Scheme = (socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http';
  const reported = addresses.isProxy(socket) ? headers['x-forwarded-proto'] : undefined;
  const last = String(reported ?? '')
    .split(',')
    .at(-1)
    ?.trim()
    .toLowerCase();
  return last === 'http' || last === 'https' ? last : own;
}
