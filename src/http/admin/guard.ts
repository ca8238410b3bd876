import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isLoopback, networkOf } from '../../shared/ip-address.ts';
import { readBearer } from '../../pipeline/authenticate.ts';
import type { ClientAddresses } from '../client-addresses.ts';
import { connectionOf } from '../connections/connection.ts';
import { originFault } from '../page-guard.ts';
import { sendRefusal } from '../respond.ts';
import type { RequestHandler } from '../router.ts';

/** How many wrong tokens one network may try within a window. */
const maxFailures = 10;
const failureWindowMs = 60_000;

/** How many networks are counted at once; beyond that the least recently used one is dropped. */
const maxWatchedNetworks = 1_000;

/**
 * Refuses every request without the admin token, and every request from a web page. The right token always passes, so
 * that an attacker's wrong ones can't lock the operator out. A request without a token is not counted as a failure,
 * because any web page can make the operator's browser send one. Behind a trusted proxy, the networks are those of its
 * clients.
 */
export function createAdminGuard(token: string, addresses: ClientAddresses): RequestHandler {
  const expected = digest(token);
  const failures = new LRUCache<string, number>({ max: maxWatchedNetworks, ttl: failureWindowMs });
  return (request, response, next) => {
    const fault = originFault(request);
    if (fault !== null) return sendRefusal(response, fault);
    const presented = readBearer(request.headers.authorization);
    if (presented !== null && timingSafeEqual(digest(presented), expected)) {
      connectionOf(request.socket)?.recognize();
      return next();
    }
    const network = watchedNetwork(addresses.of(request));
    const failed = failures.get(network) ?? 0;
    if (failed >= maxFailures) return sendRefusal(response, tooManyFailures());
    if (presented !== null) failures.set(network, failed + 1, { noUpdateTTL: true });
    sendRefusal(response, refuse('invalid_api_key', 'The admin token is missing or wrong.'));
  };
}

/** The network whose failures are counted together: one machine has all of 127.0.0.0/8 and ::1. */
function watchedNetwork(address: string): string {
  return isLoopback(address) ? 'loopback' : networkOf(address);
}

function tooManyFailures(): Refusal {
  return refuse('rate_limit_exceeded', 'Too many wrong admin tokens from this network. Wait a minute.', {
    retryAfterMs: failureWindowMs,
  });
}

/** Digests have the equal lengths that `timingSafeEqual` needs. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
