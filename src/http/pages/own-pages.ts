import type { IncomingMessage } from 'node:http';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { schemeOf } from '../heads/client-scheme.ts';

const loopbackName = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** The methods that change nothing. */
const readingMethods = new Set<string | undefined>(['GET', 'HEAD']);

/** Whether a method changes nothing. */
export function isReading({ method }: IncomingMessage): boolean {
  return readingMethods.has(method);
}

/**
 * Tells requests of the operators' own pages from those of any other page: a page in an operator's browser can reach
 * addresses that only the operator should, and the browser adds the cookie of a session by itself.
 */
export interface OwnPages {
  /** Whether `Host` is a name of this listener: another one was made to resolve to its address by a foreign page. */
  isOwnHost(request: IncomingMessage): boolean;
  /** Whether the browser reached the listener over TLS, so that a cookie may be bound to that. */
  isSecure(request: IncomingMessage): boolean;
  /** Why a request is not accepted: a page of another origin sent it; `null` if no page did, or an own one. */
  foreignFault(request: IncomingMessage): Refusal | null;
  /**
   * Why the cookie of a request does not count; `null` if it does. Pages of other ports of the same host are of the same
   * site, so the browser sends them the cookie, too: they are told by `Sec-Fetch-Site`, and by `Origin` if they would change
   * something.
   */
  cookieFault(request: IncomingMessage): Refusal | null;
}

/** Compiles what a config says of the operators' listener: its address, and the names of `admin.hosts`. */
export function readOwnPages(
  { host: configuredHost, hosts }: { readonly host: string; readonly hosts: readonly string[] },
  addresses: ClientAddresses,
): OwnPages {
  const named = new Set([...hosts, inUrl(configuredHost).toLowerCase()]);
  const isOwnHost = ({ headers: { host = '' }, socket }: IncomingMessage): boolean => {
    const name = host.replace(/:\d*$/, '').toLowerCase();
    return loopbackName.test(name) || named.has(name) || name === inUrl(plainAddress(socket.localAddress));
  };
  const isOwnOrigin = (request: IncomingMessage): boolean => {
    const { origin, host = '' } = request.headers;
    if (origin === undefined || !isOwnHost(request)) return false;
    return origin === URL.parse(`${schemeOf(request, addresses)}://${host}`)?.origin;
  };
  return {
    isOwnHost,
    isSecure: (request) => schemeOf(request, addresses) === 'https',
    foreignFault(request) {
      const { origin, 'sec-fetch-site': site } = request.headers;
      if (origin === undefined && site !== 'cross-site') return null;
      const isOwn = isOwnOrigin(request) && (site === undefined || site === 'same-origin');
      return isOwn ? null : refuse('invalid_api_key', 'Requests from web pages are not accepted here.');
    },
    cookieFault(request) {
      if (!isOwnHost(request)) return unknownHost();
      const { origin, 'sec-fetch-site': site } = request.headers;
      const isAddressTyped = site === 'none' && isReading(request);
      if (site !== undefined && site !== 'same-origin' && !isAddressTyped) return foreignCookie();
      if (origin === undefined ? !isReading(request) : !isOwnOrigin(request)) return foreignCookie();
      return null;
    },
  };
}

/** The refusal of a `Host` that is none of the listener's. */
export function unknownHost(): Refusal {
  return refuse(
    'invalid_api_key',
    "The 'Host' header names neither a loopback address, nor the listener's own address, nor one of admin.hosts.",
  );
}

function foreignCookie(): Refusal {
  return refuse(
    'invalid_api_key',
    "A session counts only in requests of this listener's own pages: 'Origin' or 'Sec-Fetch-Site' names another one.",
  );
}

/** An address as it stands in a URL. */
function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** An IPv4 address on a socket for both families has the form of an IPv6 address. An empty one equals no host. */
function plainAddress(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '') || 'none';
}
