import type { IncomingMessage } from 'node:http';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { OwnPages } from '../pages/own-pages.ts';
import type { AdminAccess, Session } from './access.ts';

/** The longest text of a session, in characters. */
const maxProofLength = 128;

/**
 * The name of the cookie. Cookies know no ports: with the port in its name, the sessions of two gateways on one machine do
 * not replace each other. Over TLS browsers take a `__Host-` cookie from this very host alone, and never over HTTP.
 */
function cookieName(request: IncomingMessage, pages: OwnPages): string {
  const isSecure = pages.isSecure(request);
  const port = /:(\d+)$/.exec(request.headers.host ?? '')?.[1] ?? (isSecure ? '443' : '80');
  return `${isSecure ? '__Host-' : ''}textgate-session-${port}`;
}

/** The `Set-Cookie` header that gives the browser a session, or takes it away with an empty proof and no time. */
export function writeCookie(
  request: IncomingMessage,
  pages: OwnPages,
  proof: string,
  maxAgeSeconds: number,
): string {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
  const secure = pages.isSecure(request) ? '; Secure' : '';
  return `${cookieName(request, pages)}=${proof}; ${attributes}${secure}`;
}

/**
 * The session of a request's cookie; `null` without a valid one, and a refusal if it does not count here. Two cookies of
 * this name are refused: one of them was set by another page of the site, and which one counts must not be a matter of order.
 */
export function readSession(
  request: IncomingMessage,
  pages: OwnPages,
  access: AdminAccess,
): Session | Refusal | null {
  const { cookie } = request.headers;
  if (cookie === undefined) return null;
  const start = `${cookieName(request, pages)}=`;
  const found = cookie.split(/; */).filter((entry) => entry.startsWith(start));
  if (found.length === 0) return null;
  const fault = pages.cookieFault(request);
  if (fault !== null) return fault;
  if (found.length > 1)
    return refuse(
      'invalid_api_key',
      'The cookie of the session was sent more than once. Delete the cookies here.',
    );
  const proof = found[0]?.slice(start.length) ?? '';
  return proof.length > maxProofLength ? null : access.findSession(proof);
}

/** Any cookie of a session, of whatever port, and how many of them are looked at. */
const anyCookie = /(?:^|; *)(?:__Host-)?textgate-session-\d+=([^;]+)/g;
const maxCookies = 4;

/** Whose session a request has in a cookie, also where it does not count, as in a request of another page; or `null`. */
export function ownerOf({ headers }: IncomingMessage, access: AdminAccess): Session | null {
  for (const [, proof = ''] of [...(headers.cookie ?? '').matchAll(anyCookie)].slice(0, maxCookies)) {
    const session = access.findSession(proof);
    if (session !== null) return session;
  }
  return null;
}

/** The session of a request's cookie, where it counts. */
export function sessionOf(request: IncomingMessage, pages: OwnPages, access: AdminAccess): Session | null {
  const found = readSession(request, pages, access);
  return isRefusal(found) ? null : found;
}
