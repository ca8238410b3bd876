import type { IncomingMessage } from 'node:http';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isLoopback } from '../../shared/ip-address.ts';
import { sendRefusal } from '../answers/respond.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { schemeOf } from '../heads/client-scheme.ts';
import type { Request, RequestHandler } from '../router.ts';

const loopbackName = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** Whether a method changes nothing. */
export function isReading({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Tells requests of the operators' own pages from those of any other page: a page in an operator's browser can reach
 * addresses that only the operator should, and the browser adds the cookie of a session by itself.
 */
export type OwnPages = ReturnType<typeof readOwnPages>;

/** Compiles what a config says of the operators' listener: its address, and the names of `admin.hosts`. */
export function readOwnPages(
  { host: configuredHost, hosts }: { readonly host: string; readonly hosts: readonly string[] },
  addresses: ClientAddresses,
) {
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
    /** Whether `Host` is a name of this listener: another one was made to resolve to its address by a foreign page. */
    isOwnHost,
    /** Whether the browser reached the listener over TLS, so that a cookie may be bound to that. */
    isSecure: (request: IncomingMessage): boolean => schemeOf(request, addresses) === 'https',
    /** Why a request is not accepted: a page of another origin sent it; `null` if no page did, or an own one. */
    foreignFault(request: IncomingMessage): Refusal | null {
      const { origin, 'sec-fetch-site': site } = request.headers;
      if (origin === undefined && site !== 'cross-site') return null;
      const isOwn = isOwnOrigin(request) && (site === undefined || site === 'same-origin');
      return isOwn ? null : refuse('invalid_api_key', 'Requests from web pages are not accepted here.');
    },
    /**
     * Why the cookie of a request does not count; `null` if it does. Pages of other ports of the same host are of the same
     * site, so the browser sends them the cookie, too: they are told by `Sec-Fetch-Site`, and by `Origin` if they would change
     * something.
     */
    cookieFault(request: IncomingMessage): Refusal | null {
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

/**
 * Refuses requests from foreign web pages on a listener with a loopback address, including those for metrics and probes,
 * which name models and upstreams; `note` notes what is refused. On other addresses, such as in a container, scrapers and
 * probes use any host name.
 */
export function createPageGuard(
  configuredHost: string,
  pages: () => OwnPages,
  note: RequestHandler,
): RequestHandler {
  if (configuredHost.toLowerCase() !== 'localhost' && !isLoopback(configuredHost))
    return (_request, _response, next) => next();
  return (request, response, next) => {
    const fault = pages().foreignFault(request) ?? hostFault(request, pages());
    if (fault === null) next();
    else note(request, response, () => sendRefusal(response, fault));
  };
}

/**
 * Refuses other host names than loopback ones and those of `admin.hosts`: a page's own name can be made to resolve to a
 * loopback address. Requests without the header pass: no browser leaves it out, but HTTP/1.0 probes do.
 */
function hostFault(request: Request, pages: OwnPages): Refusal | null {
  const { host } = request.headers;
  if (host === undefined || host === '' || pages.isOwnHost(request)) return null;
  return refuse(
    'invalid_api_key',
    "On this address the 'Host' header must name a loopback address, or one of admin.hosts.",
  );
}

/**
 * The headers of the gateway's own pages: nothing but the page's own files is loaded, no script and no style stands in
 * the page itself, no other page shows it in a frame or keeps a reference to its window.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
};
