import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import { LRUCache } from 'lru-cache';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { readBearer } from '../pipeline/authenticate.ts';
import { sendRefusal } from './refusal-response.ts';

/** How many wrong tokens an address may try in a window, how long that is in milliseconds, and how many addresses are watched. */
const maxFailures = 10;
const failureWindowMs = 60_000;
const maxWatchedAddresses = 1_000;

const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * Lets nobody pass without the admin token, and no web page at all. Only tokens that were tried are counted: a page
 * can make a browser send requests without one, and must not lock the operator out with them.
 */
export function createAdminGuard(token: string): RequestHandler {
  const expected = digest(token);
  const failures = new LRUCache<string, number>({ max: maxWatchedAddresses, ttl: failureWindowMs });
  return (request, response, next) => {
    const address = request.socket.remoteAddress ?? '';
    const refusal = pageFault(request) ?? attemptsFault(failures.get(address) ?? 0);
    if (refusal !== null) return sendRefusal(response, refusal);
    const presented = readBearer(request.headers.authorization);
    if (presented !== null && timingSafeEqual(digest(presented), expected)) return next();
    if (presented !== null) failures.set(address, (failures.get(address) ?? 0) + 1, { noUpdateTTL: true });
    sendRefusal(response, wrongToken('The admin token is missing or wrong.'));
  };
}

/**
 * A page in the operator's browser can reach a loopback address, and a name that it owns can be made to point
 * there: so an `Origin` is refused, and on a loopback listener any `Host` that is not a loopback one.
 */
function pageFault({ headers, socket }: Request): Refusal | null {
  if (headers.origin !== undefined || headers['sec-fetch-site'] === 'cross-site')
    return wrongToken('Requests from web pages are not accepted here.');
  const isLoopback = /^(::ffff:)?127\.|^::1$/.test(socket.localAddress ?? '');
  if (!isLoopback || loopbackHost.test(headers.host ?? '')) return null;
  return wrongToken("On this address the 'Host' header must be a loopback one.");
}

function attemptsFault(failed: number): Refusal | null {
  if (failed < maxFailures) return null;
  return refuse('rate_limit_exceeded', 'Too many wrong admin tokens from this address. Wait a minute.', {
    retryAfterMs: failureWindowMs,
  });
}

function wrongToken(message: string): Refusal {
  return refuse('invalid_api_key', message);
}

/** Digests have one length, which `timingSafeEqual` needs. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
