import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { LRUCache } from 'lru-cache';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isLoopback, networkOf } from '../shared/ip-address.ts';
import { readBearer } from '../pipeline/authenticate.ts';
import { connectionOf } from './connection.ts';
import { originFault } from './page-guard.ts';
import { sendRefusal } from './respond.ts';

/** How many wrong tokens a network may try in a window, how long that is in milliseconds, and how many are watched. */
const maxFailures = 10;
const failureWindowMs = 60_000;
const maxWatchedNetworks = 1_000;

/**
 * Lets nothing pass without the admin token, and no web page at all. A right token always passes, so that wrong ones
 * can't lock the operator out. Only tokens that were tried are counted: a page can make a browser send requests without
 * one.
 */
export function createAdminGuard(token: string): RequestHandler {
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
    const network = watchedNetwork(request.socket.remoteAddress ?? '');
    const failed = failures.get(network) ?? 0;
    if (failed >= maxFailures) return sendRefusal(response, tooManyFailures());
    if (presented !== null) failures.set(network, failed + 1, { noUpdateTTL: true });
    sendRefusal(response, wrongToken('The admin token is missing or wrong.'));
  };
}

/** What shares one count of failures: one machine has all of 127.0.0.0/8 and ::1. */
function watchedNetwork(address: string): string {
  return isLoopback(address) ? 'loopback' : networkOf(address);
}

function tooManyFailures(): Refusal {
  return refuse('rate_limit_exceeded', 'Too many wrong admin tokens from this network. Wait a minute.', {
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
